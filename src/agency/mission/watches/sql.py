"""Waits for a database to say yes, over a connection of its own that cannot write."""

import time
from collections.abc import Iterator
from typing import Any, ClassVar

from django.conf import settings
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from agency.agent.text import to_payload
from agency.execution.declaration import Fault
from agency.mission.watches.declared import BaseWatch, Look, View, is_text

SHOWN_CHARACTERS = 4_000
_STEPS = 10_000


class SqlCheck(BaseWatch):
    """Over when the first value of the first row that `QUERY` gives is true to Python: not 0, '', NULL.

    `ALIAS` names one of the project's databases (PostgreSQL or SQLite). The query runs on a connection of
    its own that is read-only and ends after `LOOK_SECONDS`; the row is told to the agent. Set `NAME`,
    `DESCRIPTION` and `QUERY`.
    """

    QUERY: ClassVar[str]
    ALIAS: ClassVar[str] = "default"

    @classmethod
    def faults(cls) -> Iterator[Fault]:
        if not is_text(getattr(cls, "QUERY", None)):
            yield Fault("QUERY is missing", "Set QUERY to a SELECT.")
        if cls.ALIAS not in settings.DATABASES:
            known = ", ".join(sorted(settings.DATABASES))
            yield Fault(f"ALIAS {cls.ALIAS!r} is no database", f"Use one of: {known}.")

    def look(self, view: View, memory: dict[str, Any]) -> Look:
        connection = connections[self.ALIAS].copy()
        try:
            row = self._first(connection)
        finally:
            connection.close()
        if not row or not next(iter(row.values())):
            return Look(False)
        return Look(True, payload={"row": to_payload(row, SHOWN_CHARACTERS)})

    def _first(self, connection: BaseDatabaseWrapper) -> dict[str, Any] | None:
        """The first row of the query, by the names of its columns."""
        if connection.vendor == "postgresql":
            connection.set_autocommit(False)
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                # Of the transaction alone: the connection may go back to a pool.
                cursor.execute("SET TRANSACTION READ ONLY")
                cursor.execute(f"SET LOCAL statement_timeout = {int(self.LOOK_SECONDS * 1000)}")
            else:
                cursor.execute("PRAGMA query_only = on")
                until = time.monotonic() + self.LOOK_SECONDS
                raw: Any = connection.connection
                raw.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
            cursor.execute(self.QUERY)
            row = cursor.fetchone()
            names = [column[0] for column in cursor.description or ()]
        if connection.vendor == "postgresql":
            connection.rollback()
        return None if row is None else dict(zip(names, row, strict=True))

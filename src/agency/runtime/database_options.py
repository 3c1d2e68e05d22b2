"""What a database connection must be set to, so that one slow statement or session holds up nobody.

Reads the settings that are in force: an option in the wrong place has no effect and no error.
"""

from collections.abc import Iterator
from typing import Any

from django.core import checks
from django.db import Error, connections

TIMEOUTS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
PRAGMAS = {"journal_mode": ("wal",), "synchronous": (2, 3), "foreign_keys": (1,)}
SHORTEST_WAIT = 5_000
FIX_SQLITE = "Take the OPTIONS of docs/existing-project.md; the ready project has them."
FIX_POSTGRESQL = "Set them in OPTIONS as docs/existing-project.md shows; the ready project has them."


def sqlite(connection: Any) -> tuple[str, list[str]]:
    """What is in force, in words, and the names of what is not as it must be."""
    found = {name: ask(connection, f"PRAGMA {name}") for name in (*PRAGMAS, "busy_timeout")}
    bad = [name for name, good in PRAGMAS.items() if found[name] not in good]
    if found["busy_timeout"] < SHORTEST_WAIT:
        bad.append("busy_timeout")
    if getattr(connection, "transaction_mode", None) != "IMMEDIATE":
        bad.append("transaction_mode")
    return ", ".join(f"{name} {value}" for name, value in found.items()), bad


def unlimited(connection: Any) -> list[str]:
    """What has no limit on PostgreSQL: timeouts that are off, keepalives left at the system's hours."""
    off = [name for name in TIMEOUTS if ask(connection, f"SHOW {name}") == "0"]
    options = connection.settings_dict.get("OPTIONS", {})
    if not {"keepalives_idle", "tcp_user_timeout"} & set(options) and not _is_local(connection):
        off.append("keepalives_idle")
    return off


def check(databases: Any = None, **_: Any) -> list[checks.CheckMessage]:
    """Django's check of the database that holds the executions (`check --database`, and before `migrate`)."""
    from agency.execution.claims import database

    alias = database()
    if alias not in (databases or ()):
        return []
    try:
        return list(_examine(connections[alias]))
    except Error:
        return []


def _examine(connection: Any) -> Iterator[checks.CheckMessage]:
    if connection.vendor == "sqlite":
        said, bad = sqlite(connection)
        if bad:
            message = f"SQLite has {said}; not as it must be: {', '.join(bad)}"
            yield checks.Warning(message, hint=FIX_SQLITE, id="agency.W020")
    elif connection.vendor == "postgresql" and (off := unlimited(connection)):
        message = f"PostgreSQL sessions have no {', no '.join(off)}: one that hangs may hold up every run"
        yield checks.Warning(message, hint=FIX_POSTGRESQL, id="agency.W021")


def ask(connection: Any, sql: str) -> Any:
    """The one value that a statement gives."""
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()[0]


def _is_local(connection: Any) -> bool:
    host = connection.settings_dict.get("HOST") or ""
    return not host or host.startswith("/")

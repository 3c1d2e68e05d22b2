"""Adds to an execution in one commit: numbers for its events, and the rows that carry them.

Fenced by the claim, whose row is locked and else left alone: to write it anew would cost more than all
that is added. On PostgreSQL this is one statement, prepared where the connection stays ours; on SQLite a
few short ones under the write lock. The ORM would cost more than the writing.
"""

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

from agency.enums import EventKind, ExecutionStatus, StepStatus
from agency.errors import StaleExecution
from agency.execution import prepared
from agency.execution.claims import Claim
from agency.models import Blob, Event, Execution, Message, Step
from agency.models.clock import now_sql
from agency.models.event import newest_seq_sql

_TABLE = Execution._meta.db_table
JOURNAL_VERSION = 3
"""The form in which journal entries are written.

1 up to 0.1; 2 with results that only an event holds; 3 with entries that are nothing but their events.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """The statement that comes first; in it, `{given}` stands for `columns`, each a name with its SQL.

    The rows after it may use them as `x`; the last of them is always `event_seq`. `locking` is its last
    clause where rows can be locked.
    """

    sql: str
    columns: dict[str, str]
    locking: str = ""

    def __hash__(self) -> int:
        return id(self)

    def text(self, *more: str) -> str:
        given = [f"{sql} AS {name}" for name, sql in self.columns.items()]
        return self.sql.replace("{given}", ", ".join([*given, *more]))


_OURS = f"WHERE id = ?uuid AND claim_id = ?uuid AND status = '{ExecutionStatus.IN_PROGRESS}'"
_NUMBERED = {name: f"{_TABLE}.{name}" for name in ("id", "thread_id", "generation", "iteration", "claim_id")}
_NUMBERED["event_seq"] = f"?bigint + {newest_seq_sql(f'{_TABLE}.id')}"
_NUMBER = Head(f"SELECT {{given}} FROM {_TABLE} {_OURS}", _NUMBERED, "FOR NO KEY UPDATE")
_BEGIN = Head(
    f"UPDATE {_TABLE} SET journal_version = {JOURNAL_VERSION} {_OURS} RETURNING {{given}}", _NUMBERED
)
"""The same for the first that a claim adds."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where rows go: each column with its SQL, in which `?type` stands for a value of the row.

    `x` is what the head gave; its `event_seq` is the last number of what is added, so
    `x.event_seq - ?bigint` counts back from it.
    """

    table: str
    columns: dict[str, str]
    conflict: str = ""
    returned: str = ""

    def __hash__(self) -> int:
        return id(self)


EVENTS = Target(
    Event._meta.db_table,
    {
        "execution_id": "x.id",
        "seq": "x.event_seq - ?bigint",
        "event_id": "?uuid",
        "kind": f"'{EventKind.CONTENT}'",
        "generation": "x.generation",
        "iteration": "x.iteration + 1",
        "step": "?int",
        "author": "?text",
        "content": "?jsonb",
        "data": "?jsonb",
        "usage": "?jsonb",
        "error": "?jsonb",
        "call": "?jsonb",
        "timestamp": "{now}",
    },
)
MESSAGES = Target(
    Message._meta.db_table,
    {
        "thread_id": "x.thread_id",
        "seq": "x.event_seq - ?bigint",
        "event_seq": "x.event_seq - ?bigint",
        "role": "?text",
        "content": "?text",
        "said_by": "?text",
        "iteration": "x.iteration + 1",
        "created_at": "{now}",
    },
)
BLOBS = Target(
    Blob._meta.db_table,
    {
        "execution_id": "x.id",
        "sha256": "?text",
        "size": "?bigint",
        "content": "?text",
        "created_at": "{now}",
    },
    "ON CONFLICT DO NOTHING",
)
_SAME_STEP = 'ON CONFLICT ("execution_id", "key") DO UPDATE SET '
_DONE = ("status", "claim_id", "event_seq", "result", "scratch", "state", "done_at")
STEPS = Target(
    Step._meta.db_table,
    {
        "execution_id": "x.id",
        "key": "?text",
        "status": f"'{StepStatus.DONE}'",
        "claim_id": "x.claim_id",
        "event_seq": "x.event_seq - ?bigint",
        "result": "?jsonb",
        "scratch": "?jsonb",
        "state": "?jsonb",
        "created_at": "{now}",
        "done_at": "{now}",
    },
    _SAME_STEP + ", ".join(f'"{name}" = excluded."{name}"' for name in _DONE),
)
"""Steps that are done. What was said when such a step was announced stays.

`event_seq` is the last event that it has, or that was there before it if it has none.
"""
INTENTS = Target(
    Step._meta.db_table,
    {
        "execution_id": "x.id",
        "key": "?text",
        "status": f"'{StepStatus.INTENT}'",
        "effect": "?text",
        "idempotency_key": "?text",
        "claim_id": "x.claim_id",
        "scratch": "?jsonb",
        "created_at": "{now}",
    },
    _SAME_STEP + '"key" = excluded."key"',  # changes nothing, but gives the row that is there
    returned="status, claim_id",
)
"""Announced steps; gives each as it stands."""

Addition = tuple[Target, Sequence[tuple[Any, ...]]]


def append(connection: Any, claim: Claim, count: int, additions: Sequence[Addition]) -> tuple[Any, ...]:
    """Take `count` numbers and add the rows; gives the last number, or what the last target returns.

    Raises `StaleExecution` if the claim is lost, and then adds nothing.
    """
    lock_first(connection, claim)
    fence = fenced(connection, claim)
    if claim.has_written:
        row = written(connection, _NUMBER, [count, *fence], additions)
    else:
        row = written(connection, _BEGIN, [*fence, count], additions)
    if row is None:
        raise StaleExecution(f"{claim} is no longer claimed here: nothing was written")
    # What an outer transaction may yet undo counts for nothing.
    claim.has_written = not connection.in_atomic_block
    return row


def written(
    connection: Any, head: Head, first: Sequence[Any], additions: Sequence[Addition]
) -> tuple[Any, ...] | None:
    """Do what the head says, with the values `first`, and add the rows, in one transaction.

    Gives what `append` does, or `None` if the head finds no row.
    """
    connection.ensure_connection()
    shape = tuple((target, len(rows)) for target, rows in additions if rows)
    values = [[value for row in rows for value in row] for _, rows in additions if rows]
    now = now_sql(connection.vendor)
    with connection.wrap_database_errors:
        if connection.vendor == "postgresql":
            statement = _one_statement(head, shape, now)
            return prepared.first(connection, statement, [*first, *chain.from_iterable(values)])
        return _in_turn(connection, _statements(head, shape, now), first, values)


def lock_first(connection: Any, claim: Claim) -> None:
    """Within a transaction, lock the row by a statement of its own.

    One that waits for the lock itself knows only the events that there were before it waited.
    """
    if connection.vendor == "postgresql" and connection.in_atomic_block:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT 1 FROM {_TABLE} WHERE id = %s FOR NO KEY UPDATE", [claim.execution_id])


def fenced(connection: Any, claim: Claim) -> list[str]:
    """The values that a head needs to find the claim's row."""
    native = connection.features.has_native_uuid_field
    return [raw_uuid(claim.execution_id, native), raw_uuid(claim.claim_id, native)]


def raw_uuid(value: str | uuid.UUID, native: bool) -> str:
    """A UUID as the statements here take it: this is called too often for a field to convert it."""
    return str(value) if native else str(value).replace("-", "")


def _in_turn(
    connection: Any, statements: tuple[str, ...], first: list[Any], values: list[list[Any]]
) -> tuple[Any, ...] | None:
    session = connection.connection
    begun = not connection.in_atomic_block
    if begun:
        session.execute("BEGIN IMMEDIATE")
    try:
        row = session.execute(statements[0], first).fetchone()
        if row is not None:
            known, row = row, row[-2:-1]
            for sql, some in zip(statements[1:], values, strict=True):
                row = session.execute(sql, [*known, *some]).fetchone() or row
        if begun:
            session.execute("COMMIT")
    except BaseException:
        if begun:
            session.rollback()
        raise
    return row


@cache
def _one_statement(head: Head, shape: tuple[tuple[Target, int], ...], now: str) -> str:
    parts = [f"x AS ({head.text()} {head.locking})"]
    for place, (target, count) in enumerate(shape):
        row = f"SELECT {', '.join(target.columns.values())} FROM x WHERE TRUE"
        parts.append(f"a{place} AS ({_insert(target, ' UNION ALL '.join([row] * count))})")
    given = "SELECT event_seq FROM x"
    if shape and (returned := shape[-1][0].returned):
        given = f"SELECT {returned} FROM a{len(shape) - 1}"
    sql = f"WITH {', '.join(parts)} {given}".replace("{now}", now)
    return re.sub(r"\?(\w+)", r"%s::\1", sql)


@cache
def _statements(head: Head, shape: tuple[tuple[Target, int], ...], now: str) -> tuple[str, ...]:
    # The clock's SQL is written for a driver that takes `%` for the start of a placeholder.
    now = now.replace("%%", "%")
    # What the statements after the first one are given of the execution, and of the moment.
    known = [*(f"x.{one}" for one in head.columns), "{now}"]
    return re.sub(r"\?\w+", "?", head.text(now)), *(
        _insert(target, _values(target, count, known)) for target, count in shape
    )


def _values(target: Target, count: int, known: list[str]) -> str:
    """Rows of numbered placeholders: the first are what is known, which a look at the row would cost more."""
    places = {name: f"?{place}" for place, name in enumerate(known, 1)}
    free = (f"?{place}" for place in range(len(known) + 1, len(known) + count * len(target.columns) + 1))
    rows = ", ".join([f"({', '.join(target.columns.values())})"] * count)
    return "VALUES " + re.sub(
        r"\bx\.\w+|\?\w+|\{now\}", lambda found: places.get(found[0]) or next(free), rows
    )


def _insert(target: Target, rows: str) -> str:
    names = ", ".join(f'"{name}"' for name in target.columns)
    sql = f"INSERT INTO {target.table} ({names}) {rows} {target.conflict}"
    return f"{sql} RETURNING {target.returned}" if target.returned else sql

"""Reads what a run goes on from: its row, its last iterations, its conversation, what people allowed.

In two statements, prepared where the connection stays ours, with the log as one JSON text: the ORM would
take five, and make a model's instance of each event before it becomes one of the agent's.
"""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from django.db import connections
from django.db.models import Model
from pydantic import TypeAdapter, ValidationError

from agency.agent import events as core
from agency.enums import EventKind
from agency.execution import prepared
from agency.execution.claims import database, uuid_value
from agency.execution.event_rows import core_events
from agency.models import Blob, Event, Execution, Iteration, Mission

RECENT = 2
"""How many of the last iterations are read."""
M = TypeVar("M", bound=Model)

_EVENTS = TypeAdapter(list[core.Event])


def _in_order(model: type[Model], *wanted: str) -> tuple[str, ...]:
    """Columns in the order of the model, which `from_db` takes for granted."""
    return tuple(field.attname for field in model._meta.concrete_fields if field.attname in wanted)


# What a run needs. Django reads any other column when it is asked for.
_ROW = _in_order(
    Execution,
    *("id", "agent_id", "thread_id", "mission_id", "execution_key", "provider", "status", "loop_status"),
    *("iteration", "max_iterations", "generation", "fence", "journal_version"),
    *("input", "config", "metadata", "usage"),
)
_ITERATION = _in_order(
    Iteration,
    *("id", "execution_id", "n", "claim_id", "fence", "verdict"),
    *("summary", "feedback", "failure_code", "state", "event_seq"),
)
_UUIDS = frozenset({"agent_id", "thread_id", "mission_id", "execution_id", "claim_id"})
_JSON = frozenset({"input", "config", "metadata", "usage", "state"})
_NUMBERS = frozenset({"iteration", "max_iterations", "generation", "fence", "journal_version"})
_SQL = {
    "postgresql": {
        "object": "json_build_object",
        "agg": "json_agg",
        "json": "{}",
        "size": "octet_length({}::text)",
        "uuid": "{}",
        "moment": "{}",
        "text": "::text",
    },
    "sqlite": {
        "object": "json_object",
        "agg": "json_group_array",
        "json": "json({})",
        "size": "LENGTH(CAST({} AS BLOB))",
        "uuid": "substr({0}, 1, 8) || '-' || substr({0}, 9, 4) || '-' || substr({0}, 13, 4) || '-' || "
        "substr({0}, 17, 4) || '-' || substr({0}, 21)",
        "moment": "{} || '+00:00'",
        "text": "",
    },
}
"""What the databases call the same things."""


@dataclass(slots=True)
class Past:
    """`recent` are the last committed iterations, newest first; `allowed` is what stands in the mission.

    `stored` is how many bytes the contents of the execution's events and its blobs hold.
    """

    execution: Execution
    recent: list[Iteration]
    allowed: dict[str, bool]
    stored: int

    @property
    def last(self) -> Iteration | None:
        return self.recent[0] if self.recent else None


def read(execution_id: str | uuid.UUID) -> Past:
    """The row of an execution and what belongs to it; `Execution.DoesNotExist` if it is gone."""
    connection = connections[database()]
    sql = _row_sql(connection.vendor)
    row = _first(connection, sql, [uuid_value(connection, execution_id)])
    if row is None:
        raise Execution.DoesNotExist(f"there is no execution {execution_id}")
    *columns, recent, allowed, stored = row
    found = [[each[name] for name in _ITERATION] for each in json.loads(recent or "[]")]
    iterations = [_made(Iteration, _ITERATION, each) for each in found]
    return Past(
        execution=_made(Execution, _ROW, columns),
        recent=sorted(iterations, key=lambda one: one.n, reverse=True),
        allowed=json.loads(allowed) if allowed else {},
        stored=int(stored),
    )


def conversation(execution: Execution, until: int) -> list[core.Event]:
    """The agent's events up to the one of that number, whole."""
    if until <= 0:
        return []
    connection = connections[database()]
    values = [uuid_value(connection, execution.pk), EventKind.CONTENT.value, until]
    sql = _log_sql(connection.vendor)
    if connection.vendor == "postgresql":
        text, cut = prepared.first(connection, sql, values) or (None, 0)
    else:
        with connection.cursor() as cursor:
            cursor.execute(sql, values)
            rows = cursor.fetchall()
        text, cut = f"[{','.join(row[0] for row in rows)}]", sum(row[1] for row in rows)
    try:
        return _EVENTS.validate_json(text or "[]") if not int(cut) else _whole(execution, until)
    except ValidationError:
        # Nested deeper than this parser goes.
        return _whole(execution, until)


def _whole(execution: Execution, until: int) -> list[core.Event]:
    """The same where some of them are cut, and stand in blobs."""
    rows = execution.events.filter(kind=EventKind.CONTENT.value, seq__lte=until)
    return core_events(rows.order_by("seq"))


def _first(connection: Any, sql: str, values: Sequence[Any]) -> tuple[Any, ...] | None:
    if connection.vendor == "postgresql":
        return prepared.first(connection, sql, values)
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchone()


def _made(model: type[M], names: Sequence[str], values: Sequence[Any]) -> M:
    """The instance, from values that may be texts, as `prepared.first` gives them."""
    pairs = zip(names, values, strict=True)
    return model.from_db(database(), names, [_value(model, name, value) for name, value in pairs])


def _value(model: type[Model], name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in _UUIDS or (name == "id" and model is Execution):
        return value if isinstance(value, uuid.UUID) else uuid.UUID(value)
    if name in _JSON:
        return json.loads(value) if isinstance(value, str) else value
    return int(value) if name in _NUMBERS else value


@cache
def _row_sql(vendor: str) -> str:
    known = _SQL[vendor]
    shown = ", ".join(
        f"'{name}', {known['json'].format(f'i.{name}') if name in _JSON else f'i.{name}'}"
        for name in _ITERATION
    )
    return f"""
        SELECT {", ".join(f"e.{name}" for name in _ROW)},
            (SELECT {known["agg"]}({known["object"]}({shown})){known["text"]}
             FROM {Iteration._meta.db_table} i
             WHERE i.execution_id = e.id AND i.n > e.iteration - {RECENT} AND i.n <= e.iteration),
            m.always_allow,
            (SELECT COALESCE(SUM({known["size"].format("v.content")}), 0)
             FROM {Event._meta.db_table} v WHERE v.execution_id = e.id)
            + (SELECT COALESCE(SUM(b.size), 0) FROM {Blob._meta.db_table} b WHERE b.execution_id = e.id)
        FROM {Execution._meta.db_table} e LEFT JOIN {Mission._meta.db_table} m ON m.id = e.mission_id
        WHERE e.id = %s
    """


@cache
def _log_sql(vendor: str) -> str:
    known = _SQL[vendor]
    parts = {
        "id": known["uuid"].format("v.event_id"),
        "execution_id": known["uuid"].format("v.execution_id"),
        "timestamp": known["moment"].format("v.timestamp"),
        "author": "v.author",
        "step": "v.step",
        **{name: known["json"].format(f"v.{name}") for name in ("content", "usage", "error", "call")},
    }
    shown = ", ".join(f"'{name}', {sql}" for name, sql in parts.items())
    event = f"{known['object']}({shown})"
    body = f"FROM {Event._meta.db_table} v WHERE v.execution_id = %s AND v.kind = %s AND v.seq <= %s"
    if vendor == "postgresql":
        return f"SELECT json_agg({event} ORDER BY v.seq)::text, COUNT(v.data->'blob') {body}"
    return f"SELECT {event}, json_extract(v.data, '$.blob') IS NOT NULL {body} ORDER BY v.seq"

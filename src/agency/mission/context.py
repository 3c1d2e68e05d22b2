"""Reads what a supervisor is shown of an execution: the thread's messages, and what went wrong."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django.db import connections

from agency.agent.events import Event
from agency.agent.text import cut
from agency.enums import MessageRole
from agency.execution import prepared
from agency.execution.claims import database, uuid_value
from agency.mission.transcript import Caps, Line, from_result, indented, transcribe
from agency.models import Execution, Message
from agency.models.clock import database_now, now_sql
from agency.thread.runner import SUPERVISOR

LOG_LINES = 5
LOG_LIMIT = 300
_SAID = f"FROM {Message._meta.db_table} WHERE thread_id = %s"
_LINES = f"SELECT role, content, iteration, said_by {_SAID} ORDER BY seq"
_AT_ONCE = (
    "SELECT json_agg(json_build_array(role, content, iteration, said_by) ORDER BY seq)::text, "
    f"EXTRACT(EPOCH FROM {{now}})::double precision {_SAID}"
)


def build_thread_context(execution: Execution, caps: Caps, log: Iterable[str] = ()) -> str:
    """The transcript of the execution's thread, capped; without messages yet, that of its result.

    `log` are lines about what went wrong, of which the last ones are shown at the end.
    """
    return thread_context(execution, caps, log)[0]


def thread_context(execution: Execution, caps: Caps, log: Iterable[str] = ()) -> tuple[str, datetime]:
    """What `build_thread_context` gives, and the database's present moment."""
    said, now = _said(execution)
    lines = [
        Line(MessageRole(role), content, iteration, said_by == SUPERVISOR)
        for role, content, iteration, said_by in said
    ]
    if not lines:
        kept: dict[str, Any] = execution.result or {}
        lines = from_result(kept.get("messages", []))
    shown = transcribe(lines, caps)
    tail = [f"log: {indented(cut(line, LOG_LIMIT))}" for line in list(log)[-LOG_LINES:]]
    return "\n".join([shown, *tail]), now


def _said(execution: Execution) -> tuple[list[Any], datetime]:
    """Role, content, iteration and source of the thread's messages, and the present moment.

    All of them are read in each iteration, so they come as one text of a prepared statement.
    """
    connection = connections[database()]
    values = [uuid_value(connection, execution.thread_id)]
    if connection.vendor == "postgresql":
        row = prepared.first(connection, _AT_ONCE.format(now=now_sql("postgresql")), values)
        assert row is not None  # an aggregate always gives one
        return json.loads(row[0]) if row[0] else [], datetime.fromtimestamp(float(row[1]), UTC)
    with connection.cursor() as cursor:
        cursor.execute(_LINES, values)
        return cursor.fetchall(), database_now(database())


def log_lines(events: Iterable[Event]) -> list[str]:
    """What went wrong in these events, a line each."""
    return [f"{event.error.code}: {event.error.message}" for event in events if event.error is not None]

"""Reads what a supervisor is shown of an execution: the thread's messages, and what went wrong."""

import json
from collections.abc import Iterable
from typing import Any

from django.db import connections

from agency.agent.events import Event
from agency.agent.text import cut
from agency.enums import MessageRole
from agency.execution import prepared
from agency.execution.claims import database, uuid_value
from agency.mission.transcript import Caps, Line, from_result, indented, transcribe
from agency.models import Execution, Message
from agency.thread.runner import SUPERVISOR

LOG_LINES = 5
LOG_LIMIT = 300
_SAID = f"FROM {Message._meta.db_table} WHERE thread_id = %s"
_LINES = {
    "postgresql": "SELECT json_agg(json_build_array(role, content, iteration, said_by) ORDER BY seq)::text "
    + _SAID,
    "sqlite": f"SELECT role, content, iteration, said_by {_SAID} ORDER BY seq",
}


def build_thread_context(execution: Execution, caps: Caps, log: Iterable[str] = ()) -> str:
    """The transcript of the execution's thread, capped; without messages yet, that of its result.

    `log` are lines about what went wrong, of which the last ones are shown at the end.
    """
    lines = [
        Line(MessageRole(role), content, iteration, said_by == SUPERVISOR)
        for role, content, iteration, said_by in _said(execution)
    ]
    if not lines:
        kept: dict[str, Any] = execution.result or {}
        lines = from_result(kept.get("messages", []))
    shown = transcribe(lines, caps)
    tail = [f"log: {indented(cut(line, LOG_LIMIT))}" for line in list(log)[-LOG_LINES:]]
    return "\n".join([shown, *tail])


def _said(execution: Execution) -> list[Any]:
    """Role, content, iteration and source of the thread's messages.

    All of them are read in each iteration, so they come as one text of a prepared statement.
    """
    connection = connections[database()]
    sql, values = _LINES[connection.vendor], [uuid_value(connection, execution.thread_id)]
    if connection.vendor == "postgresql":
        (text,) = prepared.first(connection, sql, values) or (None,)
        return json.loads(text) if text else []
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchall()


def log_lines(events: Iterable[Event]) -> list[str]:
    """What went wrong in these events, a line each."""
    return [f"{event.error.code}: {event.error.message}" for event in events if event.error is not None]

"""Reads what a supervisor is shown of an execution: the thread's messages, and what went wrong."""

from collections.abc import Iterable
from typing import Any

from agency.agent.events import Event
from agency.agent.text import cut
from agency.enums import MessageRole
from agency.execution.claims import database
from agency.mission.transcript import Caps, Line, from_result, indented, transcribe
from agency.models import Execution, Message
from agency.thread.runner import SUPERVISOR

LOG_LINES = 5
LOG_LIMIT = 300


def build_thread_context(execution: Execution, caps: Caps, log: Iterable[str] = ()) -> str:
    """The transcript of the execution's thread, capped; without messages yet, that of its result.

    `log` are lines about what went wrong, of which the last ones are shown at the end.
    """
    rows = Message.objects.using(database()).filter(thread_id=execution.thread_id).order_by("seq")
    lines = [
        Line(MessageRole(role), content, iteration, said_by == SUPERVISOR)
        for role, content, iteration, said_by in rows.values_list("role", "content", "iteration", "said_by")
    ]
    kept: dict[str, Any] = execution.result or {}
    lines = lines or from_result(kept.get("messages", []))
    shown = transcribe(lines, caps)
    tail = [f"log: {indented(cut(line, LOG_LIMIT))}" for line in list(log)[-LOG_LINES:]]
    return "\n".join([shown, *tail])


def log_lines(events: Iterable[Event]) -> list[str]:
    """What went wrong in these events, a line each."""
    return [f"{event.error.code}: {event.error.message}" for event in events if event.error is not None]

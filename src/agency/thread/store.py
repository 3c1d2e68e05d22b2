"""Writes a thread's messages: the readable projection of an execution's events, in the same commit."""

import uuid
from collections.abc import Iterable
from typing import Any

from agency.agent.events import Event, ToolCall, ToolResult
from agency.agent.text import as_text, cut
from agency.enums import MessageRole
from agency.models import Message

RESULT_LIMIT = 2_000


def project(
    thread_id: str | uuid.UUID, iteration: int, events: Iterable[tuple[int, Event]], *, using: str
) -> None:
    """Add one message for each event (given with its seq) that says something."""
    rows = [
        Message(
            thread_id=thread_id,
            seq=seq,
            event_seq=seq,
            iteration=iteration,
            role=_role(event).value,
            content=_text(event),
        )
        for seq, event in events
        if event.content
    ]
    if rows:
        Message.objects.using(using).bulk_create(rows)


def _role(event: Event) -> MessageRole:
    if event.tool_results:
        return MessageRole.TOOL
    return MessageRole.USER if event.author == "user" else MessageRole.ASSISTANT


def _text(event: Event) -> str:
    return "\n".join(line for line in (_line(item) for item in event.content) if line)


def _line(item: Any) -> str:
    if isinstance(item, ToolCall):
        return f"→ {item.name}({as_text(item.arguments)})"
    if isinstance(item, ToolResult):
        mark = "←" if item.status == "success" else "← error from"
        return f"{mark} {item.name}: {cut(as_text(item.content), RESULT_LIMIT)}"
    return str(getattr(item, "content", ""))

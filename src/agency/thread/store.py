"""What a thread shows of an execution's events: one readable message each, written in the same commit."""

from collections.abc import Iterable
from typing import Any

from agency.agent.events import Event, ToolCall, ToolResult
from agency.agent.text import as_text, cut
from agency.enums import MessageRole

RESULT_LIMIT = 2_000


def messages(events: Iterable[tuple[int, Event]]) -> list[dict[str, Any]]:
    """One message (seq, role, content) for each event, given with its number, that says something.

    Summaries, and what happens inside a call of another agent, are in the events only.
    """
    return [
        {"seq": seq, "event_seq": seq, "role": _role(event).value, "content": _text(event)}
        for seq, event in events
        if event.content and not event.aside
    ]


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

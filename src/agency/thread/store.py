"""What a thread shows of an execution's events: one readable message each, stored in the same commit."""

from typing import Any

from agency.agent.events import SAID_BY, Event, ToolCall, ToolResult
from agency.agent.text import as_text, cut
from agency.enums import MessageRole

RESULT_LIMIT = 2_000
MESSAGE_LIMIT = 100_000


def message(event: Event) -> tuple[str, str, str] | None:
    """Role, text and source of the message that shows `event`; `None` for one that says nothing there.

    Summaries, and what happens inside a call of another agent, are in the events only.
    """
    if not event.content or event.aside:
        return None
    said_by = (event.call or {}).get(SAID_BY, "") if event.author == "user" else ""
    return _role(event).value, cut(_text(event), MESSAGE_LIMIT), said_by


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

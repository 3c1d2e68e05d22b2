"""The rule that every provider holds a history to: each tool call has exactly one result behind it.

What a run left open is answered in its record; what a builder of one's own got wrong, in its request.
"""

from collections.abc import Iterable, Sequence

from agency.agent.events import ContentItem, Message, ToolCall, ToolResult

INTERRUPTED = "This call was interrupted and has no result. It may or may not have taken effect."


def unanswered(calls: Iterable[ToolCall], why: str = INTERRUPTED) -> list[ToolResult]:
    """A result that says what happened for each call that has none."""
    return [
        ToolResult(tool_call_id=call.tool_call_id, name=call.name, status="error", content=why)
        for call in calls
    ]


def mended(contents: Sequence[ContentItem]) -> list[ContentItem]:
    """The contents with a result for each call, and without results that answer none (or one twice)."""
    out: list[ContentItem] = []
    open_: dict[str, ToolCall] = {}
    answering = False
    for item in contents:
        if isinstance(item, ToolResult):
            if open_.pop(item.tool_call_id, None) is None:
                continue
            answering = True
        elif answering or (isinstance(item, Message) and item.role == "user"):
            out += unanswered(open_.values())
            open_, answering = {}, False
        if isinstance(item, ToolCall):
            open_[item.tool_call_id] = item
        out.append(item)
    return out + unanswered(open_.values())

"""What of an execution's events is shown as a conversation."""

from typing import Any

import pytest

from agency.agent.events import ContentItem, Event, Message, ToolResult
from agency.thread.store import messages


def event(author: str, *content: ContentItem, call: dict[str, Any] | None = None) -> Event:
    return Event(execution_id="e", author=author, content=list(content), call=call)


def said(text: str) -> Message:
    return Message(role="assistant", content=text)


def test_what_was_said_is_a_message_with_its_number_and_role() -> None:
    result = ToolResult(tool_call_id="1", name="look", status="success", content={"n": 1})
    events = [event("user", Message(role="user", content="go")), event("clerk", result), event("clerk")]
    assert messages(enumerate([*events, event("clerk", said("done"))], 5)) == [
        {"seq": 5, "event_seq": 5, "role": "user", "content": "go"},
        {"seq": 6, "event_seq": 6, "role": "tool", "content": '← look: {"n": 1}'},
        {"seq": 8, "event_seq": 8, "role": "assistant", "content": "done"},
    ]


@pytest.mark.parametrize(
    "call", [{"summary_of": ["1", "2"]}, {"within": ["call-1"]}, {"beside": "JudgeValidator"}]
)
def test_summaries_and_runs_inside_calls_are_not_part_of_the_conversation(call: dict[str, Any]) -> None:
    assert messages([(1, event("clerk", said("aside"), call=call))]) == []

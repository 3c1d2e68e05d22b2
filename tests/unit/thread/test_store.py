"""What of an execution's events is shown as a conversation."""

from typing import Any

import pytest

from agency.agent.events import ContentItem, Event, Message, ToolResult
from agency.thread.store import message


def event(author: str, *content: ContentItem, call: dict[str, Any] | None = None) -> Event:
    return Event(execution_id="e", author=author, content=list(content), call=call)


def said(text: str) -> Message:
    return Message(role="assistant", content=text)


def test_what_was_said_is_a_message_with_its_role() -> None:
    result = ToolResult(tool_call_id="1", name="look", status="success", content={"n": 1})
    assert message(event("user", Message(role="user", content="go"))) == ("user", "go", "")
    assert message(event("clerk", result)) == ("tool", '← look: {"n": 1}', "")
    assert message(event("clerk", said("done"))) == ("assistant", "done", "")
    assert message(event("clerk")) is None


@pytest.mark.parametrize(
    "call", [{"summary_of": ["1", "2"]}, {"within": ["call-1"]}, {"beside": "JudgeValidator"}]
)
def test_summaries_and_runs_inside_calls_are_not_part_of_the_conversation(call: dict[str, Any]) -> None:
    assert message(event("clerk", said("aside"), call=call)) is None

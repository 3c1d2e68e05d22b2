"""Histories that a provider would refuse, made fit to send."""

from agency.agent import ContentItem, Message, ToolCall, ToolResult
from agency.agent.repair import INTERRUPTED, mended, unanswered


def called(name: str) -> ToolCall:
    return ToolCall(tool_call_id=name, name="look")


def answered(name: str) -> ToolResult:
    return ToolResult(tool_call_id=name, name="look", status="success", content=name)


def lost(name: str) -> ToolResult:
    return ToolResult(tool_call_id=name, name="look", status="error", content=INTERRUPTED)


ASKED = Message(role="user", content="go")
SAID = Message(role="assistant", content="I look.")


def test_a_fit_history_is_left_as_it_is() -> None:
    contents = [
        ASKED,
        SAID,
        called("a"),
        called("b"),
        answered("b"),
        answered("a"),
        called("c"),
        answered("c"),
    ]
    assert mended(contents) == contents


def test_a_text_between_a_call_and_its_result_stays() -> None:
    contents: list[ContentItem] = [ASKED, called("a"), SAID, answered("a")]
    assert mended(contents) == contents


def test_a_result_without_a_call_is_dropped_and_a_second_one_too() -> None:
    assert mended([answered("x"), ASKED, called("a"), answered("a"), answered("a")]) == [
        ASKED,
        called("a"),
        answered("a"),
    ]


def test_a_call_without_a_result_gets_one_before_what_came_next() -> None:
    assert mended([called("a"), ASKED, called("b"), called("c"), answered("c"), SAID, called("d")]) == [
        called("a"), lost("a"), ASKED, called("b"), called("c"), answered("c"), lost("b"), SAID,
        called("d"), lost("d"),
    ]  # fmt: skip


def test_a_repair_says_why() -> None:
    assert unanswered([called("a")], "cancelled")[0].content == "cancelled"

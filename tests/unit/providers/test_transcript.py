"""A history in a vendor's messages: kept from request to request, yet what a fresh translation gives."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelRequest

from agency.agent.events import ContentItem, FilePart, Message, ProviderPart, ToolCall, ToolResult
from agency.agent.llm import LlmRequest
from agency.agent.providers.transcript import Transcript, to_messages

THOUGHT = {"part": {"part_kind": "thinking", "content": "hm", "signature": "s1"}}
KINDS: list[Any] = [
    lambda n: Message(role="user", content=f"question {n}"),
    lambda n: Message(role="system", content=f"rule {n}"),
    lambda n: Message(role="assistant", content=f"answer {n}"),
    lambda n: ToolCall(tool_call_id=f"c{n}", name="add", arguments={"a": n}),
    lambda n: ToolCall(tool_call_id=f"c{n}", name="add", invalid="{"),
    lambda n: ToolResult(tool_call_id=f"c{n}", name="add", status="success", content=n),
    lambda n: ToolResult(tool_call_id=f"c{n}", name="add", status="error", content="no"),
    lambda n: ProviderPart(provider="ours", data=THOUGHT),
    lambda n: ProviderPart(provider="ours", data={"text": True, "id": f"m{n}"}),
    lambda n: ProviderPart(provider="ours", data={"tool_call_id": f"c{n + 1}", "id": f"f{n}"}),
    lambda n: ProviderPart(provider="another", data=THOUGHT),
    lambda n: FilePart(media_type="image/png", uri=f"file:{n}"),
]


@st.composite
def histories(draw: st.DrawFn) -> list[list[ContentItem]]:
    """What a builder shows from request to request: mostly more of the same, sometimes with another end."""
    shown: list[list[ContentItem]] = [[]]
    for _ in range(draw(st.integers(1, 5))):
        kept = draw(st.one_of(st.just(len(shown[-1])), st.integers(0, len(shown[-1]))))
        new = draw(st.lists(st.sampled_from(KINDS), max_size=6))
        shown.append(shown[-1][:kept])
        shown[-1].extend(make(len(shown[-1]) + place) for place, make in enumerate(new))
    return shown


def told(messages: list[ModelMessage]) -> list[Any]:
    """Messages as plain data, without the moments at which they were made."""

    def timeless(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: timeless(item) for key, item in value.items() if key != "timestamp"}
        return [timeless(item) for item in value] if isinstance(value, list) else value

    return timeless(ModelMessagesTypeAdapter.dump_python(messages))


@settings(deadline=None)
@given(histories())
def test_what_is_kept_gives_the_messages_that_a_fresh_translation_gives(
    shown: list[list[ContentItem]],
) -> None:
    kept = Transcript("ours")
    for contents in shown:
        assert told(kept.of(contents)) == told(Transcript("ours").of(contents))


@settings(deadline=None)
@given(histories())
def test_messages_that_were_sent_do_not_change_later(shown: list[list[ContentItem]]) -> None:
    kept = Transcript("ours")
    sent = [kept.of(contents) for contents in shown]
    assert [told(messages) for messages in sent] == [
        told(Transcript("ours").of(contents)) for contents in shown
    ]


def test_messages_of_old_items_are_made_once() -> None:
    contents: list[ContentItem] = [Message(role="user", content="hi")]
    kept: dict[Any, Any] = {}
    first = to_messages(LlmRequest(contents=contents, kept=kept), "ours")
    contents = [*contents, Message(role="assistant", content="hello"), Message(role="user", content="so?")]
    second = to_messages(LlmRequest(contents=contents, kept=kept), "ours")
    third = to_messages(LlmRequest(contents=contents, kept=kept), "ours")
    assert second[0] is first[0]
    assert [a is b for a, b in zip(second, third, strict=True)] == [True, True, True]


def test_each_vendor_has_messages_of_its_own() -> None:
    request = LlmRequest(contents=[ProviderPart(provider="ours", data=THOUGHT)])
    messages = [to_messages(request, vendor)[0] for vendor in ("ours", "another", "ours")]
    assert [message.kind for message in messages] == ["response", "request", "response"]


def test_a_history_that_says_nothing_is_still_a_request() -> None:
    assert told(to_messages(LlmRequest(), "ours")) == told([ModelRequest(parts=[])])


def test_what_is_attached_to_an_answer_is_read_again_with_it() -> None:
    attached = ProviderPart(provider="ours", data={"text": True, "id": "m0"})
    thought = ProviderPart(provider="ours", data={"part": {"part_kind": "thinking", "content": "hm"}})
    asked, other = Message(role="user", content="?"), ProviderPart(provider="theirs", data={})
    said = [Message(role="assistant", content=text) for text in ("a", "b")]
    kept = Transcript("ours")
    for contents in [
        [attached, thought, asked],
        [attached],
        [asked, attached, other, said[0]],
        [asked, attached, other, said[1]],
    ]:
        assert told(kept.of(contents)) == told(Transcript("ours").of(contents))

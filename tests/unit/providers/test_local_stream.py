"""The local client's streams: what is shown while an answer comes, and what breaks. Over a real socket."""

import json
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agency.agent import Agent, Hooks, background, tool
from agency.agent.events import Message, ToolCall, ToolResult
from agency.agent.llm import Delta, LlmRequest, LlmResponse, OutputSchema, ToolSpec
from agency.agent.providers import resolve_model, schema_mode
from agency.agent.providers.schema_stream import Reader
from agency.errors import ContextOverflow, ModelUnavailable, RunCancelled
from tests.unit.providers.wire import Wire, completion

FIND = ToolSpec("find", "Find.", {"type": "object", "properties": {"name": {"type": "string"}}})
STREAM = {"Content-Type": "text/event-stream"}
USAGE = completion()["usage"]


@pytest.fixture(autouse=True)
def _server(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENCY_LOCAL_URL", wire.url)
    monkeypatch.setenv("AGENCY_LOCAL_KEY", "the-key")


def events(*chunks: Any, done: bool = True) -> bytes:
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([*lines, "data: [DONE]\n\n"] if done else lines).encode()


def chunk(text: str | None = None, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}


def streamed(*pieces: str, finish: str = "stop") -> bytes:
    chunks = [chunk(piece) for piece in pieces]
    return events(chunk(None), *chunks, chunk(finish=finish), {"choices": [], "usage": USAGE})


def request(*contents: Any, **options: Any) -> LlmRequest:
    return LlmRequest(contents=[Message(role="user", content="hi"), *contents], **options)


def taken(asked: LlmRequest) -> tuple[list[Delta], LlmResponse]:
    client: Any = resolve_model("local:small")
    *pieces, last = client.stream(asked)
    assert isinstance(last, LlmResponse)
    return [piece for piece in pieces if piece != Delta("text")], last


def test_text_comes_as_it_is_written_and_counts_as_a_whole_answer_does(wire: Wire) -> None:
    wire.reply(streamed("Hel", "lo."), headers=STREAM)
    pieces, response = taken(request())
    assert pieces == [Delta("text", "Hel"), Delta("text", "lo.")]
    assert (response.text, response.finish_reason, response.model) == ("Hello.", "stop", "local:small")
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.cached_tokens) == (20, 12)
    assert (wire.last["stream"], wire.last["stream_options"]) == (True, {"include_usage": True})


def test_of_a_final_answer_beside_tools_only_the_text_is_shown(wire: Wire) -> None:
    wire.reply(streamed('{"fin', 'al_answer": "Say \\', '"hi\\u00', 'e4\\" \\ud83d', "\\ude00", '!"', "}"))
    pieces, response = taken(request(tools=[FIND]))
    assert [piece.text for piece in pieces] == ["Say ", '"hi', 'ä" ', "😀", "!"]
    assert response.text == 'Say "hiä" 😀!'


def test_a_call_is_shown_when_it_is_whole_and_never_as_text(wire: Wire) -> None:
    wire.reply(streamed('{"tool": "fi', 'nd", "arguments": {"na', 'me": "A"}}'))
    pieces, response = taken(request(tools=[FIND]))
    (made,) = response.tool_calls
    assert pieces == [
        Delta("tool_call", "", made.tool_call_id, "find"),
        Delta("tool_call", '{"name": "A"}', made.tool_call_id, "find"),
    ]


def test_a_call_that_is_hidden_in_a_final_answer_is_not_shown_as_text(wire: Wire) -> None:
    hidden = json.dumps({"final_answer": json.dumps({"tool": "find", "arguments": {}})})
    wire.reply(streamed(hidden[:30], hidden[30:]))
    pieces, response = taken(request(tools=[FIND]))
    assert {piece.kind for piece in pieces} == {"tool_call"}
    assert response.tool_calls[0].name == "find"


def test_a_repeated_call_is_asked_again_before_anything_is_shown(wire: Wire) -> None:
    wire.reply(streamed('{"tool": "find", "arguments": {"name": "A"}}'))
    wire.reply(streamed('{"final_answer": "done"}'))
    pieces, response = taken(
        request(
            ToolCall(tool_call_id="c", name="find", arguments={"name": "A"}),
            ToolResult(tool_call_id="c", name="find", status="error", content="no"),
            tools=[FIND],
        )
    )
    assert pieces == [Delta("text", "done")]
    assert response.usage is not None
    assert response.usage.model_calls == 2


def test_a_final_answer_that_is_an_object_is_shown_when_it_is_whole(wire: Wire) -> None:
    shape = OutputSchema("A", {"type": "object", "properties": {"a": {"type": "integer"}}})
    wire.reply(streamed('{"final_answer": {"a"', ": 1}}"))
    assert taken(request(tools=[FIND], output_schema=shape))[0] == [Delta("text", '{"a": 1}')]


def test_a_cut_answer_shows_what_it_holds(wire: Wire) -> None:
    wire.reply(streamed('{"final_answer": "The vendor', finish="length"))
    pieces, response = taken(request(tools=[FIND]))
    assert pieces == [Delta("text", "The vendor")]
    assert (response.text, response.finish_reason) == ("The vendor", "length")


def test_what_turns_out_to_be_no_final_answer_is_taken_back(wire: Wire) -> None:
    broken = '{"final_answer": "abc", and more'
    wire.reply(streamed(broken))
    assert taken(request(tools=[FIND]))[0] == [
        Delta("text", "abc"),
        Delta("restart"),
        Delta("text", broken),
    ]


def test_an_agent_that_is_watched_gets_the_pieces_and_works_as_ever(wire: Wire) -> None:
    @tool(effect="read")
    def find(name: str) -> str:
        """Find."""
        return f"{name} is here"

    wire.reply(streamed('{"tool": "find", "arguments"', ': {"name": "A"}}'))
    wire.reply(streamed('{"final_answer": "A is ', 'here"}'))
    seen: list[Delta] = []
    result = Agent("clerk", "local:small", tools=[find], hooks=Hooks(on_delta=seen.append)).run("Where is A?")
    assert result.output == "A is here"
    assert [(piece.kind, piece.text) for piece in seen] == [
        ("tool_call", ""),
        ("tool_call", '{"name": "A"}'),
        ("text", "A is "),
        ("text", "here"),
    ]


def test_a_stream_that_stalls_is_worth_a_retry(wire: Wire) -> None:
    wire.reply(events(chunk("Hel"), done=False), headers=STREAM, promised=10, stall=True)
    with pytest.raises(ModelUnavailable, match=r"stalled: nothing came for 0\.2 s"):
        taken(request(settings={"chunk_timeout": 0.2}))


def test_a_server_that_never_begins_is_worth_a_retry(wire: Wire) -> None:
    wire.reply({}, stall=True)
    with pytest.raises(ModelUnavailable, match=r"nothing came for 0\.2 s"):
        taken(request(settings={"timeout": 0.2}))


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (events(chunk("Hel")), "ended before"),
        (events({"error": {"message": "slot lost"}}), "slot lost"),
        (b'error: {"message": "slot lost"}\n\n', "slot lost"),
        (b"data: {oops\n\n", "no JSON"),
    ],
)
def test_a_stream_that_breaks_off_is_worth_a_retry(wire: Wire, body: bytes, problem: str) -> None:
    wire.reply(body, headers=STREAM)
    with pytest.raises(ModelUnavailable, match=problem):
        taken(request())


def test_a_connection_that_is_cut_is_worth_a_retry(wire: Wire) -> None:
    wire.reply(events(chunk("Hel"), done=False), headers=STREAM, promised=10)
    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        taken(request())


def test_too_long_a_prompt_is_a_context_overflow_in_a_stream_too(wire: Wire) -> None:
    wire.reply({"error": {"message": "9031 tokens", "type": "exceed_context_size_error"}}, status=400)
    with pytest.raises(ContextOverflow, match="9031"):
        taken(request())


def test_who_waits_for_the_slot_says_so_and_a_cancel_frees_it(wire: Wire) -> None:
    wire.reply({}, stall=True)
    wire.reply(streamed("next"))
    signs, stop = threading.Semaphore(0), threading.Event()
    first: list[BaseException] = []
    shown: list[str] = []

    def hold() -> None:
        background.stop_signal.set(stop.is_set)
        try:
            taken(request())
        except RunCancelled as exc:
            first.append(exc)

    def wait() -> None:
        client: Any = resolve_model("local:small")
        for piece in client.stream(request(settings={"timeout": 3.0})):
            if piece == Delta("waiting"):
                signs.release()
            elif isinstance(piece, Delta):
                shown.append(piece.text)

    threads = [threading.Thread(target=hold), threading.Thread(target=wait)]
    threads[0].start()
    assert wire.asked.wait(60)
    threads[1].start()
    for _ in range(4):  # a sign a second: it waits for longer than its own model may take
        assert signs.acquire(timeout=60)
    stop.set()
    for thread in threads:
        thread.join(60)
    assert ("".join(shown), len(first)) == ("next", 1)


@given(st.text(), st.booleans(), st.lists(st.integers(1, 7)))
def test_however_it_is_cut_into_pieces_the_whole_text_is_shown(
    text: str, ascii_only: bool, sizes: list[int]
) -> None:
    asked = request(tools=[FIND])
    raw = json.dumps({"final_answer": text}, ensure_ascii=ascii_only)
    reader, shown, at = Reader(asked), "", 0
    for size in [*sizes, len(raw)]:
        shown += reader.feed(raw[at : at + size])
        at += size
    content = schema_mode.parse(raw, asked)
    for piece in reader.rest(LlmResponse(content)):
        shown = "" if piece.kind == "restart" else shown + piece.text
    assert shown == text.replace("\x00", "")

"""Hosted models that stream over a real socket: the pieces, the whole answer behind them, and what breaks."""

import json
import threading
from typing import Any

import pytest
from pydantic import BaseModel

from agency.agent import Agent, Hooks, background, tool
from agency.agent.events import Message, ProviderPart, ToolCall
from agency.agent.llm import Delta, LlmRequest, LlmResponse, ToolSpec, output_schema
from agency.agent.providers import resolve_model
from agency.errors import ContextOverflow, ModelUnavailable, RunCancelled
from tests.unit.providers import replies
from tests.unit.providers.wire import Wire, completion

KEY = "sk-test-0123456789abcdef"
STREAM = {"Content-Type": "text/event-stream"}
WEATHER = ToolSpec(
    "weather", "Tell the weather.", {"type": "object", "properties": {"city": {"type": "string"}}}
)


@tool(effect="read")
def look() -> str:
    """Look."""
    return "a desk"


class Person(BaseModel):
    """A person."""

    name: str


@pytest.fixture(autouse=True)
def _endpoint(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENCY_MODEL_BASE_URL", f"{wire.url}/v1")
    monkeypatch.setenv("AGENCY_MODEL_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", wire.url)


def ask(**options: Any) -> LlmRequest:
    return LlmRequest(contents=[Message(role="user", content="hi")], **options)


def compatible() -> Any:
    return resolve_model("openai-compatible:some-model")


def taken(client: Any, request: LlmRequest) -> tuple[list[Delta], LlmResponse]:
    *pieces, last = client.stream(request)
    assert isinstance(last, LlmResponse)
    return pieces, last


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    """A piece of a chat completion as OpenAI-compatible servers send it."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "test-model-1",
        "choices": [choice],
    }


def usage() -> dict[str, Any]:
    return {**chunk(), "choices": [], "usage": completion()["usage"]}


def sse(*chunks: dict[str, Any], done: bool = True) -> bytes:
    lines = [f"data: {json.dumps(one)}\n\n" for one in chunks]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()


def named(*events: dict[str, Any]) -> bytes:
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events).encode()


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def claude_says(*blocks: list[dict[str, Any]], stop: str = "end_turn") -> bytes:
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-4-5",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1000, "output_tokens": 1},
    }
    end = {
        "type": "message_delta",
        "delta": {"stop_reason": stop, "stop_sequence": None},
        "usage": {"output_tokens": 100},
    }
    start = {"type": "message_start", "message": message}
    body = [event for one in blocks for event in one]
    return named(start, *body, end, {"type": "message_stop"})


def test_text_comes_in_pieces_and_then_as_a_whole_with_usage(wire: Wire) -> None:
    body = sse(chunk(role="assistant", content="Hel"), chunk(content="lo"), chunk("stop"), usage())
    wire.reply(body, headers=STREAM)

    pieces, whole = taken(compatible(), ask(settings={"max_tokens": 7, "chunk_timeout": 5}))

    assert pieces == [Delta("text", "Hel"), Delta("text", "lo")]
    assert (whole.text, whole.finish_reason, whole.model) == ("Hello", "stop", "test-model-1")
    assert whole.usage is not None
    assert (whole.usage.input_tokens, whole.usage.cached_tokens) == (20, 12)
    assert wire.last["stream"] is True
    assert wire.last.get("chunk_timeout") is None


def test_a_call_comes_with_its_name_first_and_its_arguments_in_pieces(wire: Wire) -> None:
    def part(**function: Any) -> dict[str, Any]:
        return chunk(tool_calls=[{"index": 0, "function": function}])

    first = chunk(
        role="assistant",
        tool_calls=[
            {"index": 0, "id": "c1", "type": "function", "function": {"name": "weather", "arguments": ""}}
        ],
    )
    body = sse(first, part(arguments='{"city": '), part(arguments='"Bonn"}'), chunk("tool_calls"), usage())
    wire.reply(body, headers=STREAM)

    pieces, whole = taken(compatible(), ask(tools=[WEATHER]))

    assert {(piece.kind, piece.tool_call_id, piece.name) for piece in pieces} == {
        ("tool_call", "c1", "weather")
    }
    assert [piece.text for piece in pieces] == ["", '{"city": ', '"Bonn"}']
    assert whole.content == [ToolCall(tool_call_id="c1", name="weather", arguments={"city": "Bonn"})]
    assert whole.finish_reason == "tool_calls"


def test_streamed_thinking_goes_back_verbatim_with_the_next_request(wire: Wire) -> None:
    thought = [
        {"type": "thinking_delta", "thinking": "H"},
        {"type": "thinking_delta", "thinking": "m."},
        {"type": "signature_delta", "signature": "c2lnbmF0dXJl"},
    ]
    body = claude_says(
        block(0, {"type": "thinking", "thinking": "", "signature": ""}, *thought),
        block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Hello"}),
    )
    wire.reply(body, headers=STREAM)
    wire.reply(
        claude_says(block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Bye"})),
        headers=STREAM,
    )
    claude = resolve_model("anthropic:claude-haiku-4-5")
    seen: list[Delta] = []
    agent = Agent("clerk", claude, hooks=Hooks(on_delta=seen.append), settings={"max_tokens": 1000})

    first = agent.run("hi")
    second = agent.run("more", first.context)

    assert (first.output, second.output) == ("Hello", "Bye")
    kept = first.context.events[1].content[0]
    assert isinstance(kept, ProviderPart)
    assert wire.last["messages"][1]["content"][0] == {
        "type": "thinking", "thinking": "Hm.", "signature": "c2lnbmF0dXJl",
    }  # fmt: skip
    assert [piece.kind for piece in seen] == ["thinking", "thinking", "text", "text"]
    assert first.usage.input_tokens == 1000


def test_streamed_reasoning_items_go_back_with_the_calls_that_they_led_to(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    client: Any = resolve_model("openai:gpt-6-luna")
    client.model.client.base_url = f"{wire.url}/v1"
    wire.reply(responses_say(replies.responses_calls(("c1", "look", {}))), headers=STREAM)
    wire.reply(responses_say(replies.responses_text("seen")), headers=STREAM)
    seen: list[Delta] = []

    result = Agent("clerk", client, tools=[look], hooks=Hooks(on_delta=seen.append)).run("go")

    assert result.output == "seen"
    thought, asked, answered = wire.last["input"][-3:]
    assert (thought["type"], thought["id"], thought["encrypted_content"]) == (
        "reasoning", "rs_1", "dGhvdWdodA==",
    )  # fmt: skip
    assert (asked["type"], asked["call_id"]) == ("function_call", "c1")
    assert (answered["type"], answered["call_id"]) == ("function_call_output", "c1")
    assert "".join(piece.text for piece in seen if piece.kind == "text") == "seen"


def responses_say(response: dict[str, Any]) -> bytes:
    """The stream of a response: each item as it is added and done, and the response at the end."""
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}
    ]
    for index, item in enumerate(response["output"]):
        at = {"output_index": index, "item_id": item["id"]}
        events.append({"type": "response.output_item.added", "output_index": index, "item": _begun(item)})
        if item["type"] == "message":
            (part,) = item["content"]
            events.append(
                {"type": "response.output_text.delta", "content_index": 0, "delta": part["text"], **at}
            )
        if item["type"] == "function_call":
            events.append(
                {"type": "response.function_call_arguments.delta", "delta": item["arguments"], **at}
            )
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": response})
    return named(*({**event, "sequence_number": number} for number, event in enumerate(events)))


def _begun(item: dict[str, Any]) -> dict[str, Any]:
    empty = {"content": [], "arguments": ""}
    return {name: empty.get(name, value) for name, value in item.items()}


def test_the_answer_of_a_forced_tool_streams_as_text(wire: Wire) -> None:
    use = {"type": "tool_use", "id": "t1", "name": "final_answer", "input": {}}
    pieces_ = [{"type": "input_json_delta", "partial_json": text} for text in ('{"name":', ' "Ada"}')]
    wire.reply(claude_says(block(0, use, *pieces_), stop="tool_use"), headers=STREAM)
    old = resolve_model("anthropic:claude-3-5-haiku-latest")

    pieces, whole = taken(old, ask(output_schema=output_schema(Person)))

    assert {piece.kind for piece in pieces} == {"text"}
    assert "".join(piece.text for piece in pieces) == '{"name": "Ada"}'
    assert json.loads(whole.text) == {"name": "Ada"}


def test_a_stalled_stream_is_worth_a_retry(wire: Wire) -> None:
    wire.reply(sse(chunk(content="Hel"), done=False), headers=STREAM, promised=100, stall=True)
    stream = compatible().stream(ask(settings={"chunk_timeout": 0.2}))
    assert next(stream) == Delta("text", "Hel")
    with pytest.raises(ModelUnavailable, match="stalled"):
        next(stream)


def test_a_stream_that_does_not_begin_is_worth_a_retry(wire: Wire) -> None:
    wire.reply({}, stall=True)
    with pytest.raises(ModelUnavailable, match="stalled"):
        next(compatible().stream(ask(settings={"timeout": 0.3})))


@pytest.mark.parametrize("promised", [0, 100], ids=["ended early", "connection cut"])
def test_half_an_answer_is_no_answer(wire: Wire, promised: int) -> None:
    wire.reply(sse(chunk(content="Hel"), done=False), headers=STREAM, promised=promised)
    with pytest.raises(ModelUnavailable):
        list(compatible().stream(ask()))


def test_errors_before_the_stream_are_those_of_a_plain_request(wire: Wire) -> None:
    wire.reply({"error": {"message": "slow down"}}, status=429, headers={"Retry-After": "7"})
    with pytest.raises(ModelUnavailable, match="slow down") as caught:
        list(compatible().stream(ask()))
    assert caught.value.retry_after == 7
    wire.replies.clear()
    wire.reply({"error": {"message": "This model's maximum context length is 8192 tokens."}}, status=400)
    with pytest.raises(ContextOverflow):
        list(compatible().stream(ask()))


def test_a_cancelled_run_stops_waiting_for_its_stream(wire: Wire) -> None:
    wire.reply({}, stall=True)
    outcome: list[BaseException] = []

    def work() -> None:
        background.stop_signal.set(wire.asked.is_set)
        try:
            list(compatible().stream(ask()))
        except RunCancelled as exc:
            outcome.append(exc)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10)
    assert len(outcome) == 1

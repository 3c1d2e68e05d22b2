"""The local client over a real socket: what it sends, reads, and makes of the server's errors."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from agency.agent import background
from agency.agent.events import ContentItem, Message, ToolCall, ToolResult
from agency.agent.llm import LlmRequest, LlmResponse, OutputSchema, ToolSpec
from agency.agent.providers import resolve_model
from agency.agent.providers.local import Endpoint, announce, announcement
from agency.errors import (
    ConfigurationError,
    ContextOverflow,
    ModelOutputInvalid,
    ModelRefused,
    ModelUnavailable,
    RunCancelled,
)
from tests.unit.providers.wire import Wire, completion

FIND = ToolSpec("find", "Find.", {"type": "object", "properties": {"name": {"type": "string"}}})
FIND_A = completion('{"tool": "find", "arguments": {"name": "A"}}')


@pytest.fixture(autouse=True)
def _server(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENCY_LOCAL_URL", wire.url)
    monkeypatch.setenv("AGENCY_LOCAL_KEY", "the-key")


def ask(*contents: ContentItem, **options: Any) -> LlmResponse:
    asked = [Message(role="user", content="hi"), *contents]
    return resolve_model("local:small").generate(LlmRequest(contents=asked, **options))


def test_every_request_is_bounded_and_deterministic(wire: Wire) -> None:
    wire.reply(completion("hello"))

    response = ask()

    assert response.text == "hello"
    assert (wire.last["max_tokens"], wire.last["temperature"], wire.last["seed"]) == (512, 0, 1)
    assert "response_format" not in wire.last
    assert wire.requests[0]["headers"]["authorization"] == "Bearer the-key"
    assert response.model == "local:small"
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.cached_tokens, response.usage.cost) == (20, 12, 0.0)


def test_settings_replace_the_defaults(wire: Wire) -> None:
    wire.reply(completion("hello"))
    ask(settings={"max_tokens": 40, "temperature": 0.7, "seed": 9})
    assert (wire.last["max_tokens"], wire.last["temperature"], wire.last["seed"]) == (40, 0.7, 9)


def test_tools_are_driven_by_one_schema_and_not_sent_as_tools(wire: Wire) -> None:
    wire.reply(FIND_A)

    response = ask(tools=[FIND])

    assert "tools" not in wire.last
    assert len(wire.last["response_format"]["json_schema"]["schema"]["oneOf"]) == 2
    assert response.finish_reason == "tool_calls"
    assert response.tool_calls[0].arguments == {"name": "A"}


def test_a_repeated_call_is_asked_again_without_its_tool(wire: Wire) -> None:
    wire.reply(FIND_A)
    wire.reply(completion('{"final_answer": "done"}'))

    response = ask(
        ToolCall(tool_call_id="c", name="find", arguments={"name": "A"}),
        ToolResult(tool_call_id="c", name="find", status="error", content="no"),
        tools=[FIND],
    )

    assert response.text == "done"
    assert list(wire.last["response_format"]["json_schema"]["schema"]["properties"]) == ["final_answer"]
    assert response.usage is not None
    assert (response.usage.model_calls, response.usage.output_tokens) == (2, 10)


def test_an_output_schema_without_tools_is_the_answer_s_schema(wire: Wire) -> None:
    wire.reply(completion('{"a": 1}'))
    shape = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    assert ask(output_schema=OutputSchema("A", shape)).text == '{"a": 1}'
    assert wire.last["response_format"]["json_schema"]["schema"]["required"] == ["a"]


def test_a_call_that_was_cut_is_a_call_that_cannot_be_run(wire: Wire) -> None:
    cut = '{"tool": "find", "arguments": {"name": "A'
    wire.reply(completion(cut, "length"))
    response = ask(tools=[FIND])
    assert response.finish_reason == "length"
    assert [(call.name, call.arguments, call.invalid) for call in response.tool_calls] == [("find", {}, cut)]


def test_a_cut_answer_is_reported_as_cut(wire: Wire) -> None:
    wire.reply(completion('{"final_answer": "The vendor', "length"))
    response = ask(tools=[FIND])
    assert response.finish_reason == "length"
    assert response.text == "The vendor"


def test_too_long_a_prompt_is_a_context_overflow(wire: Wire) -> None:
    error = {"code": 400, "message": "request (9031 tokens) exceeds", "type": "exceed_context_size_error"}
    wire.reply({"error": error}, status=400)
    with pytest.raises(ContextOverflow, match="9031 tokens"):
        ask()


@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_refused_request_is_not_worth_a_retry(wire: Wire, status: int) -> None:
    wire.reply({"error": {"message": "bad grammar"}}, status=status)
    with pytest.raises(ModelRefused, match="bad grammar"):
        ask()


@pytest.mark.parametrize("status", [500, 503])
def test_a_server_that_loads_or_fails_is_worth_a_retry(wire: Wire, status: int) -> None:
    wire.reply({"error": {"message": "Loading model"}}, status=status)
    with pytest.raises(ModelUnavailable) as caught:
        ask()
    assert caught.value.retry_after == 1


@pytest.mark.parametrize("body", [b"<html>", {"choices": []}, {"choices": [{}]}, []])
def test_an_answer_that_is_none_is_invalid_output_with_the_raw_text(wire: Wire, body: Any) -> None:
    wire.reply(body)
    with pytest.raises(ModelOutputInvalid) as caught:
        ask()
    assert caught.value.raw


def test_a_stalled_server_times_out(wire: Wire) -> None:
    wire.reply({}, stall=True)
    with pytest.raises(ModelUnavailable, match=r"within 0\.2 s"):
        ask(settings={"timeout": 0.2})


def test_a_server_that_is_gone_is_worth_a_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENCY_LOCAL_URL", "http://127.0.0.1:9")
    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        ask()


def test_a_cancelled_run_frees_the_model_for_the_next_one(wire: Wire) -> None:
    wire.reply({}, stall=True)
    wire.reply(completion("next"))
    outcome: list[BaseException] = []

    def work() -> None:
        background.stop_signal.set(wire.asked.is_set)
        try:
            ask()
        except RunCancelled as exc:
            outcome.append(exc)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10)
    assert len(outcome) == 1
    assert ask().text == "next"


def test_requests_of_one_process_wait_for_the_one_slot(wire: Wire) -> None:
    wire.reply(completion("x"))
    said: list[str] = []
    threads = [threading.Thread(target=lambda: said.append(ask().text)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert said == ["x"] * 4


def test_an_announced_server_is_read_from_a_private_file(tmp_path: Path) -> None:
    file = tmp_path / "server.json"
    announce(file, Endpoint("http://127.0.0.1:1", "k"), "default")
    environ = {"AGENCY_LOCAL_SERVER_FILE": str(file)}
    assert file.stat().st_mode & 0o777 == 0o600
    assert announcement("default", environ) == Endpoint("http://127.0.0.1:1", "k")
    assert announcement("small", environ) is None


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"url": "x"})])
def test_a_server_that_is_not_announced_yet_is_worth_a_retry(tmp_path: Path, text: str) -> None:
    file = tmp_path / "server.json"
    if text:
        file.write_text(text)
    with pytest.raises(ModelUnavailable, match="not up yet"):
        announcement("small", {"AGENCY_LOCAL_SERVER_FILE": str(file)})


def test_an_unknown_local_model_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENCY_LOCAL_URL")
    with pytest.raises(ConfigurationError, match="Unknown local model 'huge'"):
        resolve_model("local:huge").generate(LlmRequest())

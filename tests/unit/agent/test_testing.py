"""The scripted model that ships for users' own tests."""

import threading
import time

import pytest

from agency.agent import LlmRequest, LlmResponse, Message, ModelUnavailable, ToolCall
from agency.agent.testing import Delay, ScriptedLlm, ScriptExhausted, call


def ask(llm: ScriptedLlm) -> LlmResponse:
    return llm.generate(LlmRequest())


def test_answers_come_in_order_and_requests_are_kept() -> None:
    llm = ScriptedLlm("one", call("add", a=1), ["text", call("add", a=2)])
    assert ask(llm).text == "one"
    assert ask(llm).tool_calls == [ToolCall(tool_call_id="call_add", name="add", arguments={"a": 1})]
    third = ask(llm)
    assert (third.text, third.finish_reason) == ("text", "tool_calls")
    assert third.usage is not None
    assert third.usage.total_tokens > 0
    assert len(llm.requests) == 3


def test_exceptions_are_raised_and_responses_passed_on() -> None:
    response = LlmResponse([Message(role="assistant", content="x")])
    llm = ScriptedLlm(ModelUnavailable("busy"), response)
    with pytest.raises(ModelUnavailable):
        ask(llm)
    assert ask(llm) is response


def test_a_function_of_the_request_answers() -> None:
    llm = ScriptedLlm(lambda request: f"{len(request.contents)} items")
    assert ask(llm).text == "0 items"


def test_an_exhausted_script_says_what_to_do() -> None:
    llm = ScriptedLlm("only")
    ask(llm)
    with pytest.raises(ScriptExhausted, match="has 1 answers, but the model was asked 2 times"):
        ask(llm)


def test_loop_repeats_the_last_answer() -> None:
    llm = ScriptedLlm("first", "last", loop=True)
    assert [ask(llm).text for _ in range(4)] == ["first", "last", "last", "last"]


def test_a_delay_takes_its_time() -> None:
    started = time.monotonic()
    assert ask(ScriptedLlm(Delay(0.02, "late"), delay=0.01)).text == "late"
    assert time.monotonic() - started >= 0.03


def test_threads_share_a_script_without_losing_an_answer() -> None:
    llm = ScriptedLlm(*[str(n) for n in range(200)])
    heard: list[str] = []
    threads = [
        threading.Thread(target=lambda: heard.extend(ask(llm).text for _ in range(25))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(heard, key=int) == [str(n) for n in range(200)]


def test_what_cannot_be_an_answer_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot be an answer"):
        ask(ScriptedLlm(7))

"""What a model or a tool may do at its worst: an honest status, and a history that a provider still takes."""

import json
import threading
from typing import Any

import pytest
from pydantic import BaseModel

from agency.agent import (
    Agent,
    AgentResult,
    ExecutionContext,
    LlmResponse,
    Message,
    RunStatus,
    ToolCall,
    tool,
)
from agency.agent.testing import call
from tests.unit.agent.doubles import Strict


class Answer(BaseModel):
    value: int


class Panic(BaseException):
    """As native extensions raise when they give up."""


class Silent:
    def __str__(self) -> str:
        raise RuntimeError("not even a name")

    __repr__ = __str__


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@tool(effect="read")
def take(value: Any = None) -> str:
    return "taken"


def run(*script: Any, tools: Any = (take,), **options: Any) -> AgentResult:
    """A run whose model refuses a history that a provider would; its context survives storage."""
    options.setdefault("max_steps", 4)
    result = Agent("clerk", Strict(*script), tools=tools, **options).run("go")
    stored = result.context.to_json()
    stored.encode()
    assert ExecutionContext.from_json(stored).events == result.context.events
    return result


def first_result(result: AgentResult) -> tuple[str, Any]:
    given = next(event.tool_results[0] for event in result.context.events if event.tool_results)
    return given.status, given.content


BROKEN = {
    "truncated": '{"value": "x',
    "an array": "[1, 2]",
    "null": "null",
    "a megabyte": '{"value": "' + "x" * 1_000_000,
    "not writable": '{"value": "\x00\ud800',
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_broken_arguments_are_answered_and_the_run_goes_on(broken: str) -> None:
    result = run(ToolCall(tool_call_id="1", name="take", invalid=broken), "done")
    assert (result.status, result.output) == (RunStatus.COMPLETED, "done")
    status, content = first_result(result)
    assert status == "error"
    assert content.startswith("The arguments of take are not a JSON object; it was not run: ")
    assert len(result.context.to_json()) < 25_000


@pytest.mark.parametrize("depth", [200, 5_000])
def test_arguments_nested_too_deeply_are_broken_arguments(depth: int) -> None:
    result = run(ToolCall(tool_call_id="1", name="take", arguments={"value": nested(depth)}), "done")
    assert result.output == "done"
    assert first_result(result)[1].endswith("nested more than 100 deep")


def test_arguments_of_a_megabyte_are_arguments() -> None:
    result = run(call("take", value="x" * 1_000_000), "done")
    assert (result.output, first_result(result)) == ("done", ("success", "taken"))


@pytest.mark.parametrize("name", ["nowhere", "", "take\x00\ud800", "x" * 10_000])
def test_an_unknown_tool_is_answered_with_the_known_ones(name: str) -> None:
    result = run(ToolCall(tool_call_id="1", name=name), "done")
    assert result.output == "done"
    status, content = first_result(result)
    assert (status, content.endswith("The tools are: take.")) == ("error", True)


def test_calls_that_share_an_id_or_have_none_are_told_apart() -> None:
    same = [ToolCall(tool_call_id=one, name="take") for one in ("", "", "a", "a")]
    result = run(same, [ToolCall(tool_call_id="a", name="take")], "done")
    assert result.output == "done"
    given = [one.tool_call_id for event in result.context.events for one in event.tool_results]
    assert len(given) == len(set(given)) == 5


def test_of_two_final_answers_one_counts_and_both_are_answered() -> None:
    answers = [call("final_answer", str(n), value=n) for n in (1, 2)]
    result = run(answers, output_type=Answer)
    assert (result.status, result.output) == (RunStatus.COMPLETED, Answer(value=1))
    given = [one.status for event in result.context.events for one in event.tool_results]
    assert given == ["success", "error"]


@pytest.mark.parametrize("empty", ["", " \n", "\x00", [], LlmResponse([])])
def test_an_empty_answer_is_no_answer(empty: Any) -> None:
    assert run(empty, "done").output == "done"
    result = run(empty, empty, max_steps=2)
    assert (result.status, result.output) == (RunStatus.MAX_STEPS, None)


def test_a_refusal_is_a_failure_in_the_models_words() -> None:
    result = run(LlmResponse([Message(role="assistant", content="I will not.")], finish_reason="refusal"))
    assert (result.status, result.stop_reason) == (RunStatus.FAILED, "model_refused")
    assert result.error is not None
    assert result.error.message == "I will not."


def test_a_refusal_in_the_middle_of_calls_leaves_a_history_to_go_on_with() -> None:
    refusal = LlmResponse([call("take", "1")], finish_reason="refusal")
    agent = Agent("clerk", Strict(refusal, "fine"), tools=[take])
    context = agent.run("go").context
    assert agent.run("please", context).output == "fine"


def test_a_call_that_was_cut_off_is_not_run_on_half_its_arguments() -> None:
    cut = LlmResponse(
        [ToolCall(tool_call_id="1", name="take", invalid='{"value": "ha')], finish_reason="length"
    )
    result = run(cut, "done")
    assert (result.output, first_result(result)[0]) == ("done", "error")


def test_a_text_that_was_cut_off_says_so() -> None:
    cut = LlmResponse([Message(role="assistant", content="The answer is")], finish_reason="length")
    result = run(cut)
    assert (result.status, result.stop_reason, result.output) == (
        RunStatus.COMPLETED,
        "length",
        "The answer is",
    )
    assert run(cut, call("final_answer", value=1), output_type=Answer).output == Answer(value=1)


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b", "\udfff", "\x00\x00ok"])
def test_what_cannot_be_stored_is_cleaned_in_texts_arguments_and_results(text: str) -> None:
    @tool(effect="read")
    def echo(value: str) -> dict[str, str]:
        return {text: value + text}

    result = run(call("echo", value=text), f"done {text}", tools=[echo])
    assert result.status is RunStatus.COMPLETED
    stored = result.context.to_json()
    assert "\\u0000" not in stored
    assert "\x00" not in stored


def test_a_tool_that_never_returns_is_given_up() -> None:
    release = threading.Event()

    @tool(effect="read", timeout=0.05)
    def hang() -> None:
        release.wait(20)

    result = run(call("hang"), "done", tools=[hang])
    release.set()
    assert result.output == "done"
    assert first_result(result) == ("error", "hang gave no result within 0.05 seconds")


@pytest.mark.parametrize("error", [Panic("thread panicked"), SystemExit(1), GeneratorExit(), Exception()])
@pytest.mark.parametrize("beside", [False, True])
def test_whatever_a_tool_raises_is_an_error_result(error: BaseException, beside: bool) -> None:
    @tool(effect="read")
    def fail() -> None:
        raise error

    calls = [call("fail", "1"), call("take", "2")] if beside else call("fail", "1")
    result = run(calls, "done", tools=[fail, take])
    assert (result.output, first_result(result)[0]) == ("done", "error")
    assert first_result(result)[1].startswith(type(error).__name__)


def test_ctrl_c_in_a_tool_ends_the_run_and_the_next_turn_finds_a_fit_history() -> None:
    @tool(effect="read")
    def interrupted() -> None:
        raise KeyboardInterrupt

    agent = Agent("clerk", Strict(call("interrupted", "1"), "fine"), tools=[interrupted])
    context = ExecutionContext()
    with pytest.raises(KeyboardInterrupt):
        agent.run("go", context)
    assert agent.run("again", context).output == "fine"


def test_fifty_megabytes_are_cut_with_a_note() -> None:
    @tool(effect="read")
    def dump() -> str:
        return "x" * 50_000_000

    result = run(call("dump"), "done", tools=[dump])
    assert result.output == "done"
    assert "[cut here: 50,000,000 characters in all" in first_result(result)[1]
    assert len(result.context.to_json()) < 110_000


@pytest.mark.parametrize(
    ("value", "status"),
    [
        (object, "success"),
        (iter([1]), "success"),
        ({(1, 2): {3}}, "success"),
        (lambda: 1, "success"),
        (Silent(), "error"),
        (nested(5_000), "error"),
        ({"n": float("nan"), "b": b"\xff"}, "success"),
    ],
)
def test_an_object_that_is_no_json_becomes_json_or_an_error(value: Any, status: str) -> None:
    @tool(effect="read")
    def give() -> Any:
        return value

    result = run(call("give"), "done", tools=[give])
    assert (result.output, first_result(result)[0]) == ("done", status)
    json.dumps(first_result(result)[1], allow_nan=False)


def test_an_exception_whose_message_cannot_be_had_is_an_error_result() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    @tool(effect="read")
    def fail() -> None:
        raise Mute

    result = run(call("fail"), "done", tools=[fail])
    assert (result.output, first_result(result)) == ("done", ("error", "Mute"))

"""The loop: what is sent, recorded and returned, turn after turn."""

from typing import Any

import pytest
from pydantic import BaseModel

from agency.agent import (
    Agent,
    ContextOverflow,
    Event,
    ExecutionContext,
    LlmRequest,
    LlmResponse,
    Message,
    ModelOutputInvalid,
    ModelRefused,
    ModelUnavailable,
    ProviderPart,
    RunCancelled,
    RunScope,
    RunStatus,
    ToolCall,
    ToolResult,
    Usage,
    tool,
)
from agency.agent.history import history_of
from agency.agent.testing import ScriptedLlm, call
from agency.errors import ConfigurationError, InvalidInput


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(return_direct=True)
def report(text: str) -> dict[str, str]:
    """Hand in a report."""
    return {"report": text}


def authors(context: ExecutionContext) -> list[str]:
    return [event.author for event in context.events]


def test_a_plain_answer_ends_the_turn_completed() -> None:
    result = Agent("clerk", ScriptedLlm("42"), "Be brief.").run("6 × 7?")
    assert (result.output, result.status, result.stop_reason) == ("42", RunStatus.COMPLETED, "final_answer")
    assert result.context.final_result == "42"
    assert authors(result.context) == ["user", "clerk"]
    assert result.context.current_step == 1


def test_the_request_carries_model_instructions_tools_and_settings() -> None:
    llm = ScriptedLlm("ok")
    Agent("clerk", llm, ["One.", "Two."], [add], settings={"max_tokens": 9}).run("go")
    (request,) = llm.requests
    assert request.model == "scripted:test"
    assert request.instructions == ["One.", "Two."]
    assert [spec.name for spec in request.tools] == ["add"]
    assert request.contents == [Message(role="user", content="go")]
    assert request.settings == {"max_tokens": 9}


def test_a_client_may_keep_something_of_a_history_from_request_to_request() -> None:
    llm = ScriptedLlm(call("add", a=1, b=2), "3", "4")
    agent = Agent("clerk", llm, tools=[add])
    context = agent.run("go").context
    agent.run("go elsewhere")
    first, second, other = (request.kept for request in llm.requests)
    assert first is second is history_of(context).kept
    assert other is not first


def test_a_tool_call_is_run_and_its_result_is_sent_back() -> None:
    llm = ScriptedLlm(call("add", a=1, b=2), "three")
    result = Agent("clerk", llm, tools=[add]).run("1 + 2?")
    assert result.output == "three"
    first, second, third = llm.requests[1].contents
    assert isinstance(first, Message) and isinstance(second, ToolCall)
    assert third == ToolResult(tool_call_id="call_add", name="add", status="success", content=3)


def test_there_is_one_event_for_the_input_each_response_and_all_results_of_a_step() -> None:
    llm = ScriptedLlm([call("add", "x", a=1, b=2), call("add", "y", a=3, b=4)], "done")
    events = Agent("clerk", llm, tools=[add]).run("go").context.events
    assert [[type(item).__name__ for item in event.content] for event in events] == [
        ["Message"],
        ["ToolCall", "ToolCall"],
        ["ToolResult", "ToolResult"],
        ["Message"],
    ]
    assert [event.step for event in events] == [0, 0, 0, 1]


def test_a_run_out_of_steps_is_max_steps_and_not_completed() -> None:
    llm = ScriptedLlm(call("add", a=1, b=2), loop=True)
    result = Agent("clerk", llm, tools=[add], max_steps=3).run("go")
    assert (result.status, result.stop_reason, result.output) == (RunStatus.MAX_STEPS, "max_steps", None)
    assert len(llm.requests) == 3
    assert result.context.final_result is None


def test_the_last_step_asks_for_an_answer_instead_of_calls() -> None:
    llm = ScriptedLlm(call("add", a=1, b=2), "so be it")
    Agent("clerk", llm, tools=[add], max_steps=2).run("go")
    assert [request.tool_choice for request in llm.requests] == ["auto", "none"]


def test_an_agent_with_one_step_may_still_call_tools() -> None:
    llm = ScriptedLlm(call("add", a=1, b=2))
    Agent("clerk", llm, tools=[add], max_steps=1).run("go")
    assert llm.requests[0].tool_choice == "auto"


def test_a_new_turn_keeps_the_history_and_has_a_budget_of_its_own() -> None:
    llm = ScriptedLlm(call("add", a=1, b=2), "three", call("add", a=3, b=4), "seven")
    agent = Agent("clerk", llm, tools=[add], max_steps=2)
    context = agent.run("1 + 2?").context
    result = agent.run("and 3 + 4?", context)
    assert result.output == "seven"
    assert context.current_step == 4
    assert len(llm.requests[-1].contents) == 7


def test_a_new_turn_never_returns_the_old_answer() -> None:
    llm = ScriptedLlm("first", call("add", a=1, b=1))
    agent = Agent("clerk", llm, tools=[add], max_steps=1)
    context = agent.run("one").context
    result = agent.run("two", context)
    assert result.status is RunStatus.MAX_STEPS
    assert context.final_result is None


def test_step_returns_nothing_until_the_turn_has_ended() -> None:
    agent = Agent("clerk", ScriptedLlm(call("add", a=1, b=2), "three"), tools=[add])
    context = ExecutionContext()
    context.add_event(
        Event(execution_id=context.execution_id, author="user", content=[Message(role="user", content="go")])
    )
    assert agent.step(context) is None
    result = agent.step(context)
    assert result is not None and result.output == "three"


def test_a_return_direct_tool_ends_the_turn_with_its_result_as_text() -> None:
    llm = ScriptedLlm(call("report", text="fine"))
    result = Agent("clerk", llm, tools=[report]).run("go")
    assert (result.output, result.stop_reason) == ('{"report": "fine"}', "return_direct")
    assert result.status is RunStatus.COMPLETED


def test_a_failed_return_direct_tool_does_not_end_the_turn() -> None:
    llm = ScriptedLlm(call("report"), "sorry")
    assert Agent("clerk", llm, tools=[report]).run("go").output == "sorry"


def test_an_empty_answer_is_corrected_within_the_step_budget() -> None:
    llm = ScriptedLlm("", "now then")
    result = Agent("clerk", llm, max_steps=2).run("go")
    assert result.output == "now then"
    correction = llm.requests[1].contents[-1]
    assert isinstance(correction, Message) and correction.role == "user" and "empty" in correction.content
    assert authors(result.context) == ["user", "clerk", "clerk", "clerk"]


def test_empty_answers_to_the_end_are_max_steps() -> None:
    result = Agent("clerk", ScriptedLlm("", loop=True), max_steps=3).run("go")
    assert result.status is RunStatus.MAX_STEPS


def test_a_cut_answer_without_content_is_corrected() -> None:
    llm = ScriptedLlm(LlmResponse([], finish_reason="length"), "short")
    assert Agent("clerk", llm).run("go").output == "short"
    correction = llm.requests[1].contents[-1]
    assert isinstance(correction, Message)
    assert "cut off" in correction.content


def test_a_cut_text_is_an_answer_that_says_so() -> None:
    cut = LlmResponse([Message(role="assistant", content="half a")], finish_reason="length")
    result = Agent("clerk", ScriptedLlm(cut)).run("go")
    assert (result.output, result.stop_reason) == ("half a", "length")


def test_a_refusal_is_failed() -> None:
    refusal = LlmResponse([Message(role="assistant", content="I will not.")], finish_reason="refusal")
    result = Agent("clerk", ScriptedLlm(refusal)).run("go")
    assert (result.status, result.stop_reason) == (RunStatus.FAILED, "model_refused")
    assert result.error is not None and result.error.message == "I will not."


def test_calls_of_a_refusal_are_not_run_and_leave_nothing_open() -> None:
    @tool(requires_confirmation=True)
    def wipe() -> None: ...

    refusal = LlmResponse([call("wipe")], finish_reason="refusal")
    agent = Agent("clerk", ScriptedLlm(refusal, "fine"), tools=[wipe])
    context = agent.run("go").context
    assert context.events[-1].tool_results[0].content == "not run: the model refused to go on"
    assert agent.run("and now?", context).output == "fine"


@pytest.mark.parametrize(
    ("error", "reason"),
    [(ModelRefused("no such model"), "model_refused"), (ContextOverflow("too long"), "context_overflow")],
)
def test_a_model_error_is_an_event_and_a_failed_result(error: Exception, reason: str) -> None:
    result = Agent("clerk", ScriptedLlm(error)).run("go")
    assert (result.status, result.stop_reason) == (RunStatus.FAILED, reason)
    recorded = result.context.events[-1]
    assert recorded.error is not None and recorded.error.code == reason
    assert recorded.error.message == str(error)


def test_an_unreadable_answer_is_recorded_and_corrected() -> None:
    llm = ScriptedLlm(ModelOutputInvalid("no JSON", raw="{oops"), "better")
    result = Agent("clerk", llm).run("go")
    assert result.output == "better"
    event = result.context.events[1]
    assert event.error is not None and event.error.code == "model_output_invalid"
    assert event.text == "{oops"


def test_an_unavailable_model_is_asked_again_up_to_the_retries() -> None:
    llm = ScriptedLlm(ModelUnavailable("busy", 0.0), ModelUnavailable("busy", 0.0), "here")
    result = Agent("clerk", llm).run("go")
    assert result.output == "here"
    assert [event.error.code for event in result.context.events if event.error] == ["model_unavailable"] * 2


def test_a_model_that_stays_unavailable_is_asked_four_times_by_default() -> None:
    llm = ScriptedLlm(ModelUnavailable("busy", 0.0), loop=True)
    result = Agent("clerk", llm).run("go")
    assert len(llm.requests) == 4
    assert (result.status, result.stop_reason) == (RunStatus.FAILED, "model_unavailable")


def test_without_retries_the_result_says_when_to_come_back() -> None:
    result = Agent("clerk", ScriptedLlm(ModelUnavailable("busy", 17.0)), model_retries=0).run("go")
    assert (result.stop_reason, result.retry_after) == ("model_unavailable", 17.0)


def test_a_turn_that_failed_goes_on_without_new_input() -> None:
    llm = ScriptedLlm(ModelUnavailable("busy"), "here")
    agent = Agent("clerk", llm, model_retries=0)
    context = agent.run("go").context
    result = agent.run(context=context)
    assert result.output == "here"
    assert authors(context).count("user") == 1


def test_usage_is_summed_over_the_turn() -> None:
    def answer(text: str, tokens: int) -> LlmResponse:
        return LlmResponse([Message(role="assistant", content=text)], Usage(input_tokens=tokens, cost=0.5))

    agent = Agent("clerk", ScriptedLlm(answer("", 10), answer("a", 20), answer("b", 30)))
    first = agent.run("go")
    assert first.usage == Usage(model_calls=2, input_tokens=30, cost=1.0)
    assert agent.run("again", first.context).usage == Usage(model_calls=1, input_tokens=30, cost=0.5)


def test_the_record_of_a_call_says_what_was_sent() -> None:
    events = Agent("clerk", ScriptedLlm(call("add", a=1, b=2), "3"), tools=[add]).run("go").context.events
    first, second = events[1].call, events[3].call
    assert first is not None and second is not None
    assert first["model"] == "scripted:test" and first["finish_reason"] == "tool_calls"
    assert first["duration"] >= 0
    assert (first["request"]["items"], second["request"]["items"]) == (1, 3)
    assert first["request"]["digest"] != second["request"]["digest"]


def test_a_context_with_a_dangling_call_is_repaired_in_the_request_and_the_record() -> None:
    context = ExecutionContext()

    def event(author: str, *content: Message | ToolCall) -> Event:
        return Event(execution_id=context.execution_id, author=author, content=list(content))

    context.add_event(event("user", Message(role="user", content="go")))
    context.add_event(event("clerk", ToolCall(tool_call_id="1", name="add", arguments={"a": 1, "b": 1})))
    llm = ScriptedLlm("done")
    Agent("clerk", llm, tools=[add]).run("well?", context)
    kinds = [item.type for item in llm.requests[0].contents]
    assert kinds == ["message", "tool_call", "tool_result", "message"]
    (repair,) = context.events[2].tool_results
    assert repair.status == "error" and "interrupted" in repair.content


def test_call_ids_that_a_model_uses_twice_are_made_unique() -> None:
    llm = ScriptedLlm(
        [call("add", "1", a=1, b=1), call("add", "1", a=2, b=2)], call("add", "1", a=3, b=3), "ok"
    )
    context = Agent("clerk", llm, tools=[add]).run("go").context
    ids = [one.tool_call_id for event in context.events for one in event.tool_calls]
    assert len(set(ids)) == 3
    assert [r.tool_call_id for event in context.events for r in event.tool_results] == ids


def test_provider_parts_go_back_verbatim() -> None:
    part = ProviderPart(provider="x", data={"signature": "s"})
    llm = ScriptedLlm([part, call("add", a=1, b=2)], "3")
    Agent("clerk", llm, tools=[add]).run("go")
    assert llm.requests[1].contents[1] == part


def test_nul_bytes_and_lone_surrogates_never_reach_the_record() -> None:
    llm = ScriptedLlm([call("add", a="1\x00", b="\ud800")], "a\x00b\ud83d")
    context = Agent("clerk", llm, tools=[add]).run("in\x00put").context
    written = "".join(event.model_dump_json() for event in context.events)
    assert "\\u0000" not in written
    written.encode("utf-8")
    assert context.final_result == "ab\ufffd"


def test_a_stop_signal_leaves_the_run_after_what_is_known_was_recorded() -> None:
    stopped = False

    def checkpoint() -> None:
        if stopped:
            raise RunCancelled("stop")

    @tool
    def stop() -> str:
        nonlocal stopped
        stopped = True
        return "stopping"

    context = ExecutionContext()
    agent = Agent("clerk", ScriptedLlm(call("stop")), tools=[stop], scope=RunScope(checkpoint=checkpoint))
    with pytest.raises(RunCancelled):
        agent.run("go", context)
    assert context.events[-1].tool_results[0].content == "stopping"


def test_waiting_for_an_unavailable_model_can_be_stopped() -> None:
    asked = 0

    def checkpoint() -> None:
        nonlocal asked
        asked += 1
        if asked > 2:
            raise RunCancelled("stop")

    llm = ScriptedLlm(ModelUnavailable("busy", 3600.0))
    with pytest.raises(RunCancelled):
        Agent("clerk", llm, scope=RunScope(checkpoint=checkpoint)).run("go")


def test_a_state_that_is_not_json_is_an_error_that_names_the_key() -> None:
    @tool
    def spoil(context: ExecutionContext) -> str:
        context.state["handle"] = object()
        return "ok"

    with pytest.raises(Exception, match="handle"):
        Agent("clerk", ScriptedLlm(call("spoil")), tools=[spoil]).run("go")


def test_an_object_with_only_generate_is_a_client() -> None:
    class Bare:
        def generate(self, request: LlmRequest) -> LlmResponse:
            return LlmResponse(content=[Message(role="assistant", content="hi")])

    assert Agent("clerk", Bare()).run("hello").output == "hi"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "user"}, "cannot be called"),
        ({"name": ""}, "cannot be called"),
        ({"max_steps": 0}, "max_steps is 0"),
        ({"model": "gpt"}, "provider:model"),
        ({"model": object()}, "generate"),
        ({"tools": [add, add]}, "two tools are called 'add'"),
        ({"tools": [BaseModel]}, "is no tool"),
    ],
)
def test_a_wrong_agent_is_refused_with_the_fix(options: dict[str, Any], message: str) -> None:
    settings: dict[str, Any] = {"name": "clerk", "model": ScriptedLlm(), **options}
    with pytest.raises(ConfigurationError, match=message):
        Agent(**settings)


def test_a_run_without_input_needs_a_context_with_an_open_turn() -> None:
    with pytest.raises(Exception, match="user_input is missing"):
        Agent("clerk", ScriptedLlm()).run()


def test_a_custom_request_builder_decides_what_the_model_sees() -> None:
    class OnlyTheLast:
        def build(self, context: ExecutionContext, request: LlmRequest) -> LlmRequest:
            request.contents = context.events[-1].content
            return request

    llm = ScriptedLlm("a", "b")
    agent = Agent("clerk", llm, request_builder=OnlyTheLast())
    agent.run("two", agent.run("one").context)
    assert llm.requests[1].contents == [Message(role="user", content="two")]


class Sum(BaseModel):
    total: int


@pytest.mark.parametrize("mode", ["native", "tool"])
def test_tools_that_come_first_are_demanded_until_each_was_called(mode: str):
    final = '{"total": 3}' if mode == "native" else call("final_answer", "f", total=3)
    llm = ScriptedLlm(call("report", "r", text="x"), call("add", a=1, b=2), final, output_mode=mode)
    quiet = tool(name="report")(lambda text: text)
    agent = Agent("clerk", llm, tools=[add, quiet], output_type=Sum, first_tools=["add"])
    assert agent.run("go").output == Sum(total=3)
    assert [request.tool_choice for request in llm.requests] == ["required", "required", "auto"]
    offered = [[spec.name for spec in request.tools] for request in llm.requests]
    assert "final_answer" not in [*offered[0], *offered[1]]
    assert ("final_answer" in offered[2]) == (mode == "tool")


def test_tools_that_come_first_are_demanded_anew_in_each_turn_but_not_in_the_last_step():
    llm = ScriptedLlm(call("add", "a", a=1, b=2), "3", call("nothing", "n"), "no idea")
    agent = Agent("clerk", llm, tools=[add], first_tools=["add"], max_steps=2)
    context = agent.run("go").context
    assert agent.run("again", context).output == "no idea"
    assert [request.tool_choice for request in llm.requests] == ["required", "none", "required", "none"]


@pytest.mark.parametrize(("given", "said"), [(["sub"], "names 'sub'; its tools are: add"), ("add", "a list")])
def test_a_tool_that_comes_first_must_be_one_of_the_agents(given: Any, said: str):
    with pytest.raises(ConfigurationError, match=said):
        Agent("clerk", ScriptedLlm(), tools=[add], first_tools=given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ([], "is empty"),
        (call("add", a=1, b=2), "holds a tool_call"),
        ([ToolResult(tool_call_id="c", name="add", status="success", content=3)], "holds a tool_result"),
        ([3], "holds a int"),
    ],
)
def test_what_nobody_can_work_on_is_refused_and_not_recorded(given: Any, said: str):
    context = ExecutionContext()
    with pytest.raises(InvalidInput, match=f"user_input {said}"):
        Agent("clerk", ScriptedLlm(), tools=[add]).run(given, context)
    assert context.events == []


@pytest.mark.parametrize("steps", [0, "3", True, 2.0])
def test_a_number_of_steps_is_a_whole_number(steps: Any):
    with pytest.raises(ConfigurationError, match="max_steps is .*; give a whole number from 1"):
        Agent("clerk", ScriptedLlm(), max_steps=steps)

"""Random scripts through the loop: whatever a model, tool or person does, the history stays fit to send."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from agency.agent import (
    Agent,
    Confirmation,
    Event,
    EverythingBuilder,
    ExecutionContext,
    LlmResponse,
    Message,
    ModelOutputInvalid,
    ModelRefused,
    ModelUnavailable,
    RequestBuilder,
    RunCancelled,
    RunScope,
    RunStatus,
    SelectingBuilder,
    SummaryBuilder,
    ToolCall,
    TrimmingBuilder,
    WindowBuilder,
    tool,
)
from tests.unit.agent.doubles import MemoryJournal, Strict


class Answer(BaseModel):
    value: int


@tool(effect="idempotent")
def good(n: int = 0) -> int:
    return n


@tool(effect="read")
def bad() -> None:
    raise RuntimeError("broken")


@tool(effect="idempotent", requires_confirmation=lambda arguments: arguments["n"] > 5)
def careful(n: int) -> int:
    return n


@tool(return_direct=True, effect="idempotent")
def direct() -> str:
    return "straight"


TOOLS = [good, bad, careful, direct]

calls = st.builds(
    ToolCall,
    tool_call_id=st.sampled_from(["a", "b", "c", ""]),
    name=st.sampled_from(["good", "good", "bad", "careful", "direct", "nowhere", "final_answer"]),
    arguments=st.sampled_from([{}, {"n": 1}, {"n": 9}, {"n": "x"}, {"value": 3}]),
    invalid=st.sampled_from([None, None, None, '{"n": ']),
)
texts = st.builds(
    Message, role=st.just("assistant"), content=st.sampled_from(["", "hello", '{"value": 3}', "a\x00\ud800"])
)
contents = st.lists(calls | texts, max_size=4)
finish = st.sampled_from(["stop", "stop", "tool_calls", "length", "refusal", None])
answers = st.builds(LlmResponse, content=contents, finish_reason=finish) | st.sampled_from(
    [ModelUnavailable("busy", 0.0), ModelOutputInvalid("what?", raw="{"), ModelRefused("no")]
)


@st.composite
def scripts(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "answers": draw(st.lists(answers, max_size=8)),
        "max_steps": draw(st.integers(min_value=1, max_value=6)),
        "output_type": draw(st.sampled_from([None, Answer])),
        "decision": draw(st.sampled_from(["approve", "reject"])),
        "builder": draw(st.sampled_from(["everything", "window", "summary"])),
    }


def builder(kind: str) -> RequestBuilder:
    """A builder that leaves out as much as it may, or nothing."""
    if kind == "everything":
        return EverythingBuilder()
    trimming = TrimmingBuilder(steps=1, block=1, characters=1)
    if kind == "window":
        return SelectingBuilder(WindowBuilder(turns=1, block=1), trimming)
    return SelectingBuilder(SummaryBuilder(turns=1, block=1, llm=Strict("so far", loop=True)), trimming)


def drive(
    script: dict[str, Any], scope: RunScope | None = None, turns: int = 2
) -> tuple[ExecutionContext, list[str]]:
    """Two turns over one context, each pause answered; the outcomes in order."""
    llm = Strict(*script["answers"], "hello", loop=True)
    agent = Agent(
        "clerk",
        llm,
        tools=TOOLS,
        max_steps=script["max_steps"],
        output_type=script["output_type"],
        request_builder=builder(script["builder"]),
        scope=scope,
        model_retries=1,
    )
    context = ExecutionContext(execution_id="e")
    outcomes: list[str] = []
    for turn in range(turns):
        result = agent.run(f"turn {turn}", context)
        while result.status is RunStatus.INTERRUPTED:
            outcomes.append("interrupted")
            decisions = [Confirmation(one.tool_call_id, script["decision"]) for one in result.pending]
            context = reload(context)
            result = agent.run(context=context, confirmations=decisions)
        outcomes.append(f"{result.status}:{result.stop_reason}:{result.output!r}")
        if result.status is RunStatus.COMPLETED:
            assert context.final_result == result.output
        else:
            assert context.final_result is None
    return context, outcomes


def reload(context: ExecutionContext) -> ExecutionContext:
    """The context as another process would load it."""
    events = [Event.model_validate_json(event.model_dump_json()) for event in context.events]
    return ExecutionContext(context.execution_id, events, context.current_step, dict(context.state))


def shape(context: ExecutionContext) -> list[Any]:
    return [
        event.model_dump(mode="json", exclude={"id", "timestamp", "call"})
        for event in context.events
        if event.error is None or event.error.code == "model_output_invalid"
    ]


@given(scripts())
@settings(max_examples=80, deadline=None)
def test_every_history_that_is_sent_is_fit_and_every_step_is_counted(script: dict[str, Any]) -> None:
    context, _ = drive(script)
    said = [event for event in context.events if event.call and not event.aside]
    answered = [event for event in said if event.call and "finish_reason" in event.call]
    assert [event.step for event in answered] == list(range(len(answered)))
    assert context.current_step == len(answered)
    for event in context.events:
        assert Event.model_validate_json(event.model_dump_json()) == event


@given(scripts(), st.integers(min_value=0, max_value=30))
@settings(max_examples=80, deadline=None)
def test_a_run_cut_anywhere_and_started_anew_ends_as_the_uncut_one(script: dict[str, Any], cut: int) -> None:
    whole, expected = drive(script, RunScope(journal=MemoryJournal()), turns=1)
    journal = MemoryJournal()
    checks = 0

    def checkpoint() -> None:
        nonlocal checks
        checks += 1
        if checks == cut:
            raise RunCancelled("cut")

    try:
        drive(script, RunScope(journal=journal, checkpoint=checkpoint), turns=1)
    except RunCancelled:
        kept = sum(1 for key in journal.entries if key.endswith(":model") or ":model-error:" in key)
        rest = {**script, "answers": [*script["answers"], *["hello"] * 30][kept:]}
        again, outcomes = drive(rest, RunScope(journal=journal), turns=1)
        if not any(isinstance(answer, ModelUnavailable) for answer in script["answers"]):
            assert outcomes[-1] == expected[-1]
            assert shape(again) == shape(whole)

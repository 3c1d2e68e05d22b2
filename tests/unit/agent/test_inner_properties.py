"""Random scripts through agents that call agents and ask people: fit histories, one record, restarts."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from agency.agent import (
    Agent,
    Confirmation,
    ExecutionContext,
    HumanAnswer,
    LlmRequest,
    LlmResponse,
    Message,
    RunCancelled,
    RunScope,
    RunStatus,
    ToolCall,
    ToolCallInfo,
    tool,
)
from agency.agent.builtins import ask_human
from tests.unit.agent.doubles import MemoryJournal, check

ARGUMENTS: list[tuple[str, dict[str, Any]]] = [
    ("note", {"text": "x"}),
    ("careful", {"text": "y"}),
    ("careful", {}),
    ("ask_human", {"question": "q", "choices": ["yes", "no"]}),
    ("form", {}),
    ("inner", {"task": "t"}),
    ("inner", {"task": "u"}),
    ("nowhere", {}),
]


def called(identity: str, call: tuple[str, dict[str, Any]]) -> ToolCall:
    return ToolCall(tool_call_id=identity, name=call[0], arguments=call[1])


calls = st.builds(called, st.sampled_from(["a", "b", "a/b"]), st.sampled_from(ARGUMENTS))
said = st.builds(Message, role=st.just("assistant"), content=st.sampled_from(["", "hello"]))
answers = st.lists(
    st.lists(calls, min_size=1, max_size=3) | st.lists(said, max_size=1), min_size=2, max_size=5
)
scripts = st.fixed_dictionaries(
    {
        "outer": answers,
        "inner": answers,
        "person": st.lists(st.sampled_from(["approve", "reject", "later"]), min_size=1, max_size=4),
        "max_steps": st.integers(min_value=1, max_value=4),
    }
)


class Reader:
    """Answers by what it has read alone, so that it says the same again after a restart."""

    def __init__(self, said: Sequence[Any]) -> None:
        self.said = said

    def generate(self, request: LlmRequest) -> LlmResponse:
        check(request.contents)
        content = self.said[len(request.contents) // 2 % len(self.said)]
        return LlmResponse([item.model_copy() for item in content])


class Office:
    """An agent with an agent as a tool; `done` counts what was done to the world, by idempotency key."""

    def __init__(self, script: dict[str, Any], scope: RunScope | None = None) -> None:
        self.script = script
        self.done: Counter[str] = Counter()
        self.asked = 0
        done = self.done

        @tool(effect="idempotent")
        def note(text: str, info: ToolCallInfo) -> str:
            done[info.idempotency_key] += 1
            return text

        @tool(effect="idempotent", requires_confirmation=True)
        def careful(text: str, info: ToolCallInfo) -> str:
            done[info.idempotency_key] += 1
            return text

        @tool(effect="idempotent")
        def form(answer: HumanAnswer, info: ToolCallInfo) -> str:
            done[info.idempotency_key] += 1
            return f"filled in: {answer.value}"

        tools = [note, careful, form, ask_human]
        inner = Agent("scout", Reader(script["inner"]), tools=tools, max_steps=script["max_steps"])
        offered = [*tools, inner.as_tool("Scouts.", name="inner")]
        outer = Reader(script["outer"])
        self.agent = Agent("boss", outer, tools=offered, max_steps=script["max_steps"], scope=scope)

    def run(self, turns: int = 1) -> ExecutionContext:
        """All turns, each pause answered in parts; the context is stored and loaded wherever it rests."""
        context = ExecutionContext("e")
        for turn in range(turns):
            result = self.agent.run(f"turn {turn}", context)
            context = self._checked(result.context)
            for _ in range(100):
                if result.status is not RunStatus.INTERRUPTED:
                    break
                self.asked += 1
                before = [one.tool_call_id for one in result.pending]
                assert len(before) == len(set(before))
                result = self.agent.run(context=context, confirmations=self._decide(result.pending))
                context = self._checked(result.context)
            assert result.status in {RunStatus.COMPLETED, RunStatus.MAX_STEPS}
        return context

    def _decide(self, pending: list[ToolCall]) -> list[Confirmation]:
        person = self.script["person"]
        decided = [(call, person[place % len(person)]) for place, call in enumerate(pending)]
        now = [(call, word) for call, word in decided if word != "later"] or [(pending[0], "approve")]
        return [self._decision(call, word) for call, word in now]

    def _decision(self, call: ToolCall, word: str) -> Confirmation:
        if call.name in {"ask_human", "form"} and word == "approve":
            return Confirmation(call.tool_call_id, "answer", answer="yes")
        return Confirmation(call.tool_call_id, "approve" if word == "approve" else "reject")

    def _checked(self, context: ExecutionContext) -> ExecutionContext:
        loaded = ExecutionContext.from_json(context.to_json())
        assert loaded == context
        return loaded


def shape(context: ExecutionContext) -> list[Any]:
    """What was said, run by run: how the events of runs at the same time mix is left to chance."""
    events = [
        (event.within, event.author, event.step, event.model_dump(include={"content", "usage"}))
        for event in context.events
    ]
    return sorted(events, key=lambda row: row[0])


@given(scripts)
@settings(max_examples=60, deadline=None)
def test_runs_inside_runs_keep_fit_histories_and_one_whole_record(script: dict[str, Any]) -> None:
    office = Office(script)
    context = office.run(turns=2)
    own = [one for one in context.events if not one.within]
    answered = [one.step for one in own if one.call and "finish_reason" in one.call]
    event(f"inside: {len(own) < len(context.events)}, asked: {office.asked > 0}")
    assert answered == list(range(context.current_step))
    assert {one.within[-1] for one in context.events if one.within} <= {
        call.tool_call_id for one in context.events for call in one.tool_calls
    }


@given(scripts, st.integers(min_value=1, max_value=25))
@settings(max_examples=60, deadline=None)
def test_a_run_cut_anywhere_ends_as_the_uncut_one_and_does_nothing_twice(
    script: dict[str, Any], cut: int
) -> None:
    whole = Office(script, RunScope(journal=MemoryJournal()))
    expected = whole.run()
    journal = MemoryJournal()
    checks = 0

    def checkpoint() -> None:
        nonlocal checks
        checks += 1
        if checks >= cut:
            raise RunCancelled("cut")

    first = Office(script, RunScope(journal=journal, checkpoint=checkpoint))
    try:
        first.run()
    except RunCancelled:
        recorded = {idempotency_key(key) for key in journal.entries}
        second = Office(script, RunScope(journal=journal))
        again = second.run()
        assert shape(again) == shape(expected)
        assert again.final_result == expected.final_result
        assert {*first.done, *second.done} == {*whole.done}
        assert not recorded & {*second.done}


def idempotency_key(key: str) -> str:
    path, _, own = key.rpartition("/")
    return f"exec:1/{path}:{own}" if path else f"exec:1:{own}"

"""The journal's rows: what was recorded comes back, whatever was in it."""

from typing import Any

import pytest

from agency.agent import Agent, Effect, Event, ExecutionContext, Message, RunScope, ToolCall, tool
from agency.agent.events import Usage
from agency.agent.testing import ScriptedLlm, call
from agency.execution import ToolScratchpad
from agency.models import Execution, Step
from agency.models.clock import Now
from agency.runtime.claim import claim
from agency.runtime.journal import DbJournal, UncertainEffect
from tests.integration.runtime.conftest import Submit

pytestmark = pytest.mark.django_db


def journal_of(execution: Execution, state: dict[str, Any] | None = None) -> DbJournal:
    """The journal of a new claimer; an earlier one is dead."""
    Execution.objects.filter(pk=execution.pk, claim_id__isnull=False).update(lease_until=Now(-1))
    got = claim(execution.pk)
    assert got is not None
    context = ExecutionContext(execution_id=str(execution.pk), state=state or {})
    journal = DbJournal(got, ToolScratchpad(), context, 0)
    return journal


def event(execution: Execution, *content: Any) -> Event:
    return Event(
        execution_id=str(execution.pk),
        author="Clerk",
        step=3,
        content=list(content) or [Message(role="assistant", content="hello")],
        usage=Usage(model_calls=1, output_tokens=4, cost=0.25),
        call={"model": "m", "duration": 0.5},
    )


def test_a_recorded_event_comes_back_as_it_was(submit: Submit) -> None:
    execution = submit()
    said = event(execution, Message(role="assistant", content="Grüße\n→ 世界"))
    journal_of(execution).record("1:0:model", None, [said])

    recorded = journal_of(execution).recall("1:0:model")
    assert recorded is not None
    back = recorded.events[0]
    assert back.model_dump(exclude={"timestamp"}) == said.model_dump(exclude={"timestamp"})


def test_several_events_under_one_key_come_back_in_order(submit: Submit) -> None:
    execution = submit()
    texts = ["a", "b", "c"]
    events = [event(execution, Message(role="assistant", content=text)) for text in texts]
    journal_of(execution).record("1:0:x", {"n": 3}, events)
    recorded = journal_of(execution).recall("1:0:x")
    assert recorded is not None
    assert (recorded.result, [one.text for one in recorded.events]) == ({"n": 3}, texts)


@pytest.mark.parametrize("result", [None, 0, "", False, [], {"a": [1, None]}, "x\x00y", float("nan")])
def test_every_result_can_be_recorded_and_is_found_as_recorded(submit: Submit, result: Any) -> None:
    execution = submit()
    journal_of(execution).record("1:0:0:tool:x", result, [])
    recorded = journal_of(execution).recall("1:0:0:tool:x")
    assert recorded is not None
    expected = {"x\x00y": "xy"}.get(result, result) if isinstance(result, str) else result
    assert recorded.result == ("NaN" if result != result else expected)


def test_arguments_that_are_no_strict_json_do_not_break_the_write(submit: Submit) -> None:
    execution = submit()
    call = ToolCall(tool_call_id="c", name="t", arguments={"x": float("inf"), "y": "\ud800"})
    journal_of(execution).record("1:0:model", None, [event(execution, call)])
    stored = execution.events.last().content[0]["arguments"]
    assert stored["x"] is None
    assert "\ud800" not in stored["y"]


def test_what_was_not_recorded_is_not_recalled(submit: Submit) -> None:
    execution = submit()
    journal = journal_of(execution)
    journal.intend("1:0:0:tool:x", Effect.IDEMPOTENT, "key")
    assert journal.recall("1:0:0:tool:x") is None
    assert journal_of(execution).recall("1:0:0:tool:x") is None


def test_an_intent_keeps_its_key_and_effect_when_the_result_comes(submit: Submit) -> None:
    execution = submit()
    journal = journal_of(execution)
    journal.intend("1:0:0:tool:x", Effect.IDEMPOTENT, "key")
    announced = Step.objects.get()
    journal.record("1:0:0:tool:x", 1, [])
    step = Step.objects.get()
    assert (step.status, step.effect, step.idempotency_key) == ("done", "idempotent", "key")
    assert step.created_at == announced.created_at
    assert step.done_at is not None


def test_only_another_claimers_unsafe_intent_is_uncertain(submit: Submit) -> None:
    execution = submit()
    first = journal_of(execution)
    called = ToolCall(tool_call_id="c", name="pay", arguments={"amount": 5})
    first.record("1:0:model", None, [event(execution, called)])
    for _ in range(2):
        first.intend("1:0:0:pay:x", Effect.UNSAFE, "key")
    with pytest.raises(UncertainEffect) as raised:
        journal_of(execution).intend("1:0:0:pay:x", Effect.UNSAFE, "key")
    assert raised.value.calls == [("1:1:0:0:pay:x", called)]


def test_a_call_that_was_cut_inside_another_is_known_by_both_ids(submit: Submit) -> None:
    execution = submit()
    first = journal_of(execution)
    called = ToolCall(tool_call_id="c", name="pay", arguments={"amount": 5})
    first.record("out/er/1:0:model", None, [event(execution, called)])
    first.intend("out/er/1:0:0:pay:hash", Effect.UNSAFE, "key")
    with pytest.raises(UncertainEffect) as raised:
        journal_of(execution).intend("out/er/1:0:0:pay:hash", Effect.UNSAFE, "key")
    ((key, call),) = raised.value.calls
    assert (key, call.tool_call_id) == ("1:out/er/1:0:0:pay:hash", "out/er/c")


def test_scratchpad_and_state_are_brought_to_where_each_recalled_step_left_them(submit: Submit) -> None:
    execution = submit()
    journal = journal_of(execution)
    for n in (1, 2):
        journal._scratchpad.record("n", n)
        journal._context.state["n"] = n
        journal.record(f"1:0:{n}:tool:x", n, [])

    again = journal_of(execution)
    again.recall("1:0:1:tool:x")
    assert (again._scratchpad.entries("n"), again._context.state) == ([1], {"n": 1})
    again.recall("1:0:2:tool:x")
    assert (again._scratchpad.entries("n"), again._context.state) == ([1, 2], {"n": 2})
    again._scratchpad.record("n", 3)
    again.record("1:0:3:tool:x", 3, [])
    assert Step.objects.get(key="1:1:0:3:tool:x").scratch == [["n", 3]]


def test_an_entry_that_is_nothing_but_its_events_has_no_step_and_restores_what_was_before_it(
    submit: Submit,
) -> None:
    execution = submit()
    journal = journal_of(execution)
    for n in (1, 2):
        journal._scratchpad.record("n", n)
        journal._context.state["n"] = n
        journal.record(f"1:{n}:0:tool:x", n, [])
        journal.record(f"1:{n}:results", None, [event(execution)])
    assert not Step.objects.filter(key__endswith="results").exists()

    again = journal_of(execution)
    again.recall("1:1:results")
    assert (again._scratchpad.entries("n"), again._context.state) == ([1], {"n": 1})
    again.recall("1:2:results")
    assert (again._scratchpad.entries("n"), again._context.state) == ([1, 2], {"n": 2})


@pytest.mark.parametrize("newest", [1, None])
def test_steps_of_older_versions_are_older_than_what_follows_them(submit: Submit, newest: int | None) -> None:
    execution = submit()
    journal = journal_of(execution)
    journal._context.state["n"] = 1
    journal.record("1:0:0:tool:x", 1, [])
    Step.objects.update(event_seq=newest)
    journal.record("1:0:results", None, [event(execution)])
    again = journal_of(execution)
    again.recall("1:0:results")
    assert again._context.state == {"n": 1}


def test_secrets_do_not_reach_the_journal(submit: Submit) -> None:
    execution = submit()
    secret = "sk-live-abcdefghijklmnop1234"
    journal = journal_of(execution)
    journal._scratchpad.record("seen", f"key {secret}")
    journal._context.state["api_key"] = "hunter2"
    said = Message(role="assistant", content=f"it is {secret}")
    journal.record("1:0:model", {"content": secret}, [event(execution, said)])
    rows = [*Step.objects.values_list(), *execution.events.values_list()]
    rows += list(execution.thread.messages.values_list())
    assert secret not in str(rows)
    assert "hunter2" not in str(rows)


@pytest.mark.parametrize("effect", list(Effect))
def test_a_call_that_was_announced_is_done_with_the_event_that_holds_its_result(
    submit: Submit, effect: Effect
) -> None:
    @tool(effect=effect, parallel=False)
    def add(n: int) -> int:
        return n + 1

    execution = submit()
    llm = ScriptedLlm([call("add", "a", n=1), call("add", "b", n=2)], "3")
    agent = Agent("clerk", llm, tools=[add], scope=RunScope(journal=journal_of(execution)))
    agent.run("go", ExecutionContext(str(execution.pk)))
    steps = Step.objects.filter(key__contains=":add:").order_by("id")
    if effect is Effect.READ:
        assert not steps
        return
    first, last = steps
    assert {first.status, last.status} == {"done"}
    assert (first.result["content"], last.result) == (2, None)
    (results,) = (
        row for row in execution.events.filter(kind="content") if row.data["key"].endswith("results")
    )
    assert (first.event_seq, last.event_seq) == (results.seq - 1, results.seq)

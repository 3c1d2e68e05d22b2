"""Runs of agents inside calls, over the journal's rows: cut anywhere, they go on where they were."""

import threading
from typing import Any

import pytest
from django.db import connections

from agency.agent import Agent, Confirmation, ExecutionContext, LlmRequest, RunStatus, tool
from agency.agent.journal import RunScope
from agency.agent.testing import ScriptedLlm, call
from agency.models import Execution, Message
from agency.runtime import wiring
from tests.integration.rows import forget
from tests.integration.runtime.conftest import Submit
from tests.integration.runtime.test_record import journal_of

pytestmark = pytest.mark.django_db


class Office:
    """A boss, a scout with a tool `look`, a tool `buy` that a person must confirm and a tool `dump`."""

    def __init__(self, execution: Execution, outer: list[Any], inner: list[Any]) -> None:
        self.done: list[str] = []

        @tool(effect="idempotent")
        def look(at: str, context: ExecutionContext) -> str:
            self.done.append(at)
            context.state[at] = "seen"
            return f"saw {at}"

        @tool(effect="unsafe", requires_confirmation=True)
        def buy(what: str) -> str:
            self.done.append(f"bought {what}")
            return f"bought {what}"

        @tool(effect="read")
        def dump() -> str:
            self.done.append("dumped")
            return "x\n" * 80_000

        self.context = ExecutionContext(execution_id=str(execution.pk))
        self.journal = journal_of(execution)
        self.journal._context = self.context
        scout = Agent("scout", ScriptedLlm(*inner), tools=[look, buy])
        self.agent = Agent(
            "boss",
            ScriptedLlm(*outer),
            tools=[scout.as_tool("Scouts."), dump],
            scope=RunScope(journal=self.journal),
            model_retries=0,
        )

    def run(self, *decisions: Confirmation) -> Any:
        return self.agent.run("go", self.context, decisions)


def test_a_run_cut_inside_a_call_is_taken_up_by_the_next_claimer(submit: Submit) -> None:
    execution = submit()
    scout = call("scout", "c", task="look around")
    first = Office(execution, [scout], [call("look", "l", at="a"), call("buy", "b", what="map")])
    assert first.run().status is RunStatus.INTERRUPTED

    second = Office(execution, ["done"], ["have it"])
    result = second.run(Confirmation("c/b", "approve"))
    assert (result.output, second.done) == ("done", ["bought map"])
    assert second.context.state == {"a": "seen"}
    assert result.usage.model_calls == 5

    third = Office(execution, [], [])
    again = third.run(Confirmation("c/b", "approve"))
    assert (again.output, third.done, again.usage) == ("done", [], result.usage)
    rows = execution.events.order_by("seq").values_list("seq", flat=True)
    assert list(rows) == list(range(1, len(rows) + 1))
    said = Message.objects.filter(thread=execution.thread).order_by("seq").values_list("content", flat=True)
    assert list(said) == ["go", '→ scout({"task": "look around"})', "← scout: have it", "done"]


def test_a_result_as_large_as_results_may_be_is_replayed(submit: Submit) -> None:
    execution = submit()
    first = Office(
        execution, [[call("dump", "d"), call("scout", "c", task="x")]], [call("buy", "b", what="y")]
    )
    assert first.run().status is RunStatus.INTERRUPTED

    # The process had died before the results of the step were written, and only those of the call were.
    assert forget(execution, "1:1:0:results") == 1
    second = Office(execution, ["done"], ["ok"])
    result = second.run(Confirmation("c/b", "reject"))
    assert (result.output, second.done) == ("done", [])
    results = [one for event in result.context.events for one in event.tool_results if one.name == "dump"]
    assert "[cut here: 160,000 characters" in results[0].content


@pytest.mark.django_db(transaction=True)
def test_tools_of_inner_agents_leave_no_connection_on_a_thread_made_for_a_call() -> None:
    used: list[Any] = []

    @tool(effect="read")
    def look() -> str:
        connections["default"].ensure_connection()
        used.append((threading.get_ident(), connections["default"]))
        return "seen"

    def answer(request: LlmRequest) -> Any:
        return call("look") if len(request.contents) == 1 else "done"

    inner = Agent("scout", ScriptedLlm(answer, loop=True), tools=[look])
    boss = Agent("boss", ScriptedLlm(), tools=[wiring._tidy(inner.as_tool("Scouts."))])
    calls = [call("scout", str(n), task="x") for n in range(2)]
    assert [one.content for one in boss.act(ExecutionContext(), calls)] == ["done", "done"]
    assert len(used) == 2
    for thread, connection in used:
        assert thread != threading.get_ident()
        assert connection.connection is None

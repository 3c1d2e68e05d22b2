"""Arguments are stored without secrets: recorded results are found, and no call runs on a mask."""

from typing import Any

import pytest

from agency.agent import Agent, AgentResult, Confirmation, ExecutionContext, RunScope, ToolCallInfo, tool
from agency.agent.testing import ScriptedLlm, call
from agency.models import Event, Execution, Step
from agency.runtime.journal import UncertainEffect
from tests.integration.rows import forget
from tests.integration.runtime.conftest import Submit
from tests.integration.runtime.test_record import journal_of

pytestmark = pytest.mark.django_db
CANARY = "canary-4711-0815"


class Door:
    """An agent with a tool that takes a password, run by one claimer after the other."""

    def __init__(self, execution: Execution, *answers: Any, **conduct: Any) -> None:
        self.opened: list[tuple[str, str]] = []

        @tool(**{"effect": "idempotent", **conduct})
        def open_door(password: str, info: ToolCallInfo, gap: float = 1.0) -> str:
            """Open the door."""
            self.opened.append((password, info.idempotency_key))
            return "open"

        self.llm = ScriptedLlm(*answers)
        self.context = ExecutionContext(execution_id=str(execution.pk))
        self.journal = journal_of(execution)
        self.journal._context = self.context
        scope = RunScope(journal=self.journal)
        self.agent = Agent("porter", self.llm, tools=[open_door], scope=scope, model_retries=0)

    def run(self, *decisions: Confirmation) -> AgentResult:
        return self.agent.run("go", self.context, decisions)

    def results(self) -> list[str]:
        return [one.content for event in self.context.events for one in event.tool_results]


ASK = call("open_door", "c", password=CANARY, gap=1e16)


def test_a_result_that_was_recorded_is_found_again(submit: Submit) -> None:
    execution = submit()
    other = call("open_door", "d", password="another-one")
    assert Door(execution, [ASK, other], "done", parallel=False).run().output == "done"
    # The process died before the results of the step were written; that of the first call was.
    assert forget(execution, "1:1:0:results", "1:1:1:model") == 2
    steps = Step.objects.filter(execution=execution)
    assert steps.filter(key__contains=":1:open_door:").update(status="intent", done_at=None) == 1

    second = Door(execution, "done", parallel=False)
    assert second.run().output == "done"
    assert (second.opened, second.results()[0]) == ([], "open")
    assert CANARY not in str(list(Event.objects.filter(execution=execution).values()))


def test_a_call_that_was_not_made_yet_is_not_made_without_the_secret(submit: Submit) -> None:
    execution = submit()
    Door(execution, ASK, "done").run()
    (called,) = execution.steps.values_list("key", flat=True)
    assert forget(execution, called, "1:1:0:results", "1:1:1:model") == 3

    second = Door(execution, call("open_door", "d", password="another-one"), "done")
    assert second.run().output == "done"
    assert [password for password, _ in second.opened] == ["another-one"]
    assert "held a secret" in second.results()[0]


def test_an_unsafe_call_that_was_cut_is_still_uncertain(submit: Submit) -> None:
    execution = submit()
    Door(execution, ASK, "done", effect="unsafe").run()
    cut = Step.objects.filter(execution=execution, key__contains="open_door")
    cut.update(status="intent", done_at=None)
    assert forget(execution, "1:1:0:results", "1:1:1:model") == 2

    second = Door(execution, "done", effect="unsafe")
    with pytest.raises(UncertainEffect):
        second.run()
    assert second.opened == []


def test_a_person_may_fill_in_what_was_not_kept(submit: Submit) -> None:
    execution = submit()
    assert Door(execution, ASK, requires_confirmation=True).run().stop_reason == "confirmation"

    second = Door(execution, "done", requires_confirmation=True)
    assert second.run(Confirmation("c", "approve", {"password": CANARY})).output == "done"
    assert [password for password, _ in second.opened] == [CANARY]

    third = Door(submit(), ASK, requires_confirmation=True)
    third.run()
    fourth = Door(Execution.objects.get(pk=third.context.execution_id), "done", requires_confirmation=True)
    assert fourth.run(Confirmation("c", "approve")).output == "done"
    assert fourth.opened == []

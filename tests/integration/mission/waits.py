"""Missions that wait, a watch that says what a test tells it, and what ends their waits."""

from datetime import timedelta
from typing import Any, ClassVar

from agency.enums import EventKind
from agency.execution.metadata import WAIT
from agency.mission.watches import BaseWatch, Look, View
from agency.models import ConfiguredAgent, Execution
from agency.models.clock import Now, database_now
from agency.runtime.body import Outcome, run_claimed
from agency.runtime.claim import claim
from agency.testing import run_until_parked
from tests.integration.mission.scripted import Model, decision, mission

DONE = decision("complete", evidence="It is done.")


class Bell(BaseWatch):
    """Does what a test has put into `says`: a look, or something to raise."""

    NAME = "bell"
    DESCRIPTION = "The bell has rung."
    INTERVAL = 45
    TIMEOUT = 7_200
    says: ClassVar[list[Any]] = []
    saw: ClassVar[list[tuple[View, dict[str, Any]]]] = []

    def begin(self, view: View) -> dict[str, Any]:
        return {"rung": 3}

    def look(self, view: View, memory: dict[str, Any]) -> Look:
        self.saw.append((view, memory))
        said = self.says.pop(0)
        if isinstance(said, Look):
            return said
        raise said


def waiting_for(agent: ConfiguredAgent, model: Model, wait: dict[str, Any], **fields: Any) -> Execution:
    """An execution whose first iteration has decided to wait; a second one would complete it."""
    model.answers = ["I must wait.", "It is done."]
    model.decisions = [decision("wait", wait={"what_for": "the new stock", **wait}), DONE]
    given = {"loop_prompt": "Go.", "max_iterations": 5, **fields}
    return run_until_parked(mission(agent, **given).dispatch())


def passes(execution: Execution) -> None:
    """The time of the wait is over."""
    execution.refresh_from_db()
    kept = execution.metadata[WAIT]
    past = (database_now() - timedelta(seconds=1)).isoformat()
    Execution.objects.filter(pk=execution.pk).update(
        next_run_at=Now(-1), metadata={**execution.metadata, WAIT: {**kept, "until": past}}
    )


def is_due(execution: Execution) -> None:
    """The time of the next look has come."""
    Execution.objects.filter(pk=execution.pk).update(next_run_at=Now(-1))


def run_once(execution: Execution) -> Outcome:
    made = claim(execution.pk)
    assert made is not None
    return run_claimed(made)


def told(execution: Execution, n: int = 2) -> tuple[str, str]:
    """Who opened the n-th iteration, and with what words."""
    message = execution.thread.messages.get(iteration=n, role="user")
    return message.said_by, message.content


def resumed(execution: Execution) -> dict[str, Any]:
    return execution.events.get(kind=EventKind.LOOP_RESUMED.value).data


def ready_in(execution: Execution) -> float:
    assert execution.next_run_at is not None
    return (execution.next_run_at - database_now()).total_seconds()

"""What the ledger says of an iteration's time: from its first claim to its commit, no wait before it."""

from datetime import timedelta

import pytest
from django.db.models import F

from agency.enums import EventKind
from agency.execution import store
from agency.models import ConfiguredAgent, Execution, Iteration
from agency.models.clock import database_now
from agency.runtime.claim import claim
from tests.integration.mission.scripted import Model, go_on, mission
from tests.integration.mission.waits import DONE, is_due, passes, run_once, waiting_for

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def an_hour_ago(execution: Execution) -> None:
    """All that has happened so far was an hour earlier."""
    execution.events.update(timestamp=F("timestamp") - HOUR)
    execution.iterations.update(started_at=F("started_at") - HOUR, finished_at=F("finished_at") - HOUR)
    Execution.objects.filter(pk=execution.pk).update(started_at=F("started_at") - HOUR)


def began(execution: Execution, n: int) -> Iteration:
    """The n-th row, which must have begun when the log says so."""
    row = execution.iterations.get(n=n)
    kind = EventKind.STARTED if n == 1 else EventKind.ITERATION_STARTED
    moment = execution.events.get(kind=kind.value, **({} if n == 1 else {"iteration": n})).timestamp
    assert abs(row.started_at - moment) < timedelta(milliseconds=500)
    return row


def looping(agent: ConfiguredAgent, model: Model) -> Execution:
    """An execution whose first iteration is committed and whose second one is due an hour later."""
    model.answers = ["One is done.", "All are done."]
    model.decisions = [go_on("Do the second."), DONE]
    execution = mission(agent, loop_prompt="Go.", loop_delay_seconds=3_600).dispatch()
    run_once(execution)
    an_hour_ago(execution)
    is_due(execution)
    return execution


def test_the_delay_between_two_iterations_belongs_to_neither(agent: ConfiguredAgent, model: Model):
    execution = looping(agent, model)
    run_once(execution)
    first, second = began(execution, 1), began(execution, 2)
    assert second.started_at - first.finished_at > HOUR / 2
    assert second.finished_at - second.started_at < HOUR / 2


def test_an_iteration_that_was_given_back_began_with_its_first_claim(agent: ConfiguredAgent, model: Model):
    execution = looping(agent, model)
    taken = claim(execution.pk)
    assert taken is not None
    store.release(taken)
    execution.events.filter(iteration=2).update(timestamp=database_now() - HOUR / 4)
    run_once(execution)
    second = began(execution, 2)
    assert HOUR / 5 < second.finished_at - second.started_at < HOUR / 2


def test_a_wait_and_its_looks_are_no_time_of_the_next_iteration(agent: ConfiguredAgent, model: Model):
    execution = waiting_for(agent, model, {"seconds": 3_600})
    an_hour_ago(execution)
    passes(execution)
    run_once(execution)
    second = began(execution, 2)
    assert second.finished_at - second.started_at < HOUR / 2

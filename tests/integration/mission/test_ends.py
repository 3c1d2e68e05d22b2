"""How missions come to their ends, and that nothing but an extension leads out of one."""

from collections.abc import Callable
from typing import Any

import pytest

from agency.execution import answering, overdue, service
from agency.execution.invariants import violations
from agency.mission import extending, signals, waiting
from agency.models import ConfiguredAgent, Execution
from agency.models.clock import Now
from agency.runtime import sweep
from agency.runtime.body import Outcome, run_claimed
from agency.runtime.claim import claim
from agency.testing import run_until_parked
from tests.integration.mission.people import (
    Model,
    blocked,
    cashier,
    complete,
    decision,
    go_on,
    kinds,
    loop,
    model,
    open_request,
    paying,
    say,
    state,
)

__all__ = ["cashier", "model"]
pytestmark = pytest.mark.django_db
Make = Callable[[ConfiguredAgent, Model], Execution]


def _run(agent: ConfiguredAgent, model: Model, answer: Any, decided: Any, **fields: Any) -> Execution:
    model.answers, model.decisions = [answer], [decided]
    return run_until_parked(loop(agent, **fields).dispatch())


def accepted(agent: ConfiguredAgent, model: Model) -> Execution:
    return loop(agent).dispatch()


def delayed(agent: ConfiguredAgent, model: Model) -> Execution:
    model.answers, model.decisions = ["Paid A."], [go_on("Pay B.")]
    made = loop(agent, loop_delay_seconds=3_600).dispatch()
    first = claim(made.pk)
    assert first is not None and run_claimed(first) is Outcome.HANDED_ON
    made.refresh_from_db()
    return made


def waits(agent: ConfiguredAgent, model: Model) -> Execution:
    return _run(agent, model, "Later.", decision("wait", wait={"signal": "paid"}))


def asks(agent: ConfiguredAgent, model: Model) -> Execution:
    return _run(agent, model, "Which?", blocked("Which bill?"))


def confirms(agent: ConfiguredAgent, model: Model) -> Execution:
    return _run(agent, model, paying(5), None)


def completed(agent: ConfiguredAgent, model: Model) -> Execution:
    return _run(agent, model, "Paid.", complete("Paid."))


def failed(agent: ConfiguredAgent, model: Model) -> Execution:
    return _run(agent, model, "No.", decision("failed"))


def cancelled(agent: ConfiguredAgent, model: Model) -> Execution:
    made = waits(agent, model)
    service.request_cancel(made)
    made.refresh_from_db()
    return made


def limit_reached(agent: ConfiguredAgent, model: Model) -> Execution:
    return _run(agent, model, "Paid A.", go_on("Pay B."), max_iterations=1)


@pytest.mark.parametrize(
    ("make", "before"),
    [
        (accepted, ("pending", "running", 0)),
        (delayed, ("in_progress", "running", 1)),
        (waits, ("in_progress", "waiting", 1)),
        (confirms, ("interrupted", "running", 0)),
        (asks, ("interrupted", "blocked", 1)),
    ],
)
def test_a_cancel_leads_from_every_state_to_one_end(
    cashier: ConfiguredAgent, model: Model, make: Make, before: tuple[str, str, int]
) -> None:
    execution = make(cashier, model)
    assert state(execution) == before
    service.request_cancel(execution)
    execution.refresh_from_db()
    assert state(execution) == ("cancelled", "cancelled", before[2])
    assert (execution.next_run_at, execution.claim_id) == (None, None)
    assert execution.human_requests.filter(status="open").count() == 0
    assert kinds(execution)[-2:] == ["mission_loop_cancelled", "execution_cancelled"]
    assert violations(5) == []


@pytest.mark.parametrize("make", [completed, failed, cancelled, limit_reached])
def test_nothing_but_an_extension_leads_out_of_an_end(
    cashier: ConfiguredAgent, model: Model, make: Make
) -> None:
    execution = make(cashier, model)
    before = Execution.objects.filter(pk=execution.pk).values().get()
    events = execution.events.count()
    assert claim(execution.pk) is None
    assert waiting.run_now(execution, execution.owner).refused
    assert signals.send(execution, "paid").refused
    service.request_cancel(execution)
    sweep.close()
    assert Execution.objects.filter(pk=execution.pk).values().get() == before
    assert execution.events.count() == events
    extended = extending.extend(execution, 1, execution.owner)
    assert (extended.refused is None) is (make is limit_reached)
    execution.refresh_from_db()
    assert (execution.generation == 2) is (make is limit_reached)
    assert violations(5) == []


def test_an_answer_to_a_request_of_an_ended_mission_changes_nothing(
    cashier: ConfiguredAgent, model: Model
) -> None:
    execution = confirms(cashier, model)
    request = open_request(execution)
    late = say(request, "approve")
    service.request_cancel(execution)
    assert answering.answer(request.pk, [late], execution.owner).refused
    assert overdue.expire(request.pk) is False
    execution.refresh_from_db()
    assert state(execution) == ("cancelled", "cancelled", 0)


def test_a_deadline_passes_while_something_else_than_a_person_is_waited_for(
    cashier: ConfiguredAgent, model: Model
) -> None:
    model.answers, model.decisions = ["Later."], [decision("wait", wait={"signal": "paid"})]
    execution = run_until_parked(loop(cashier, limits={"seconds": 3_600}).dispatch())
    assert execution.deadline_at is not None
    Execution.objects.filter(pk=execution.pk).update(deadline_at=Now(-1))
    sweep.close()
    execution.refresh_from_db()
    assert state(execution) == ("failed", "failed", 1)
    assert execution.failure_code == "deadline_exceeded"
    assert kinds(execution)[-2:] == ["mission_loop_failed", "execution_failed"]
    assert violations(5) == []

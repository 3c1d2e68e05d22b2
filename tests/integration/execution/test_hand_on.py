"""An iteration is committed and the next one due in one transaction, once, by who holds the claim."""

from collections.abc import Callable
from typing import Any

import pytest

from agency.enums import Verdict
from agency.errors import RunCancelled, StaleExecution
from agency.execution import store
from agency.execution.claims import Claim
from agency.execution.conversation import ClosedAttempt
from agency.execution.signals import execution_due
from agency.models import ConfiguredAgent, Execution
from agency.models.clock import Now
from agency.runtime.claim import claim
from tests.integration.rows import execution_row

pytestmark = pytest.mark.django_db


@pytest.fixture
def held(agency_agent: Callable[..., ConfiguredAgent]) -> Claim:
    made = claim(execution_row(agency_agent("clerk")).pk)
    assert made is not None
    return made


def closed(n: int = 1) -> ClosedAttempt:
    return ClosedAttempt(n, Verdict.CONTINUE, "went well")


def test_the_next_iteration_is_due_and_the_claim_is_free(held: Claim) -> None:
    told: list[Any] = []

    def listen(sender: Any, **what: Any) -> None:
        told.append((what["execution_id"], what["expected_iteration"]))

    execution_due.connect(listen)
    try:
        store.hand_on(held, closed())
    finally:
        execution_due.disconnect(listen)
    row = Execution.objects.get(pk=held.execution_id)
    assert (row.status, row.iteration, row.claim_id, row.claim_count) == ("in_progress", 1, None, 0)
    assert row.iterations.get().verdict == "continue"
    assert row.events.last().kind == "execution_attempt_completed"
    assert told == [(held.execution_id, 2)]
    following = claim(held.execution_id, 2)
    assert following is not None and following.iteration == 2


def test_with_a_delay_nobody_is_woken_and_it_is_due_later(held: Claim) -> None:
    store.hand_on(held, closed(), delay=60)
    assert Execution.objects.filter(pk=held.execution_id, next_run_at__gt=Now(58)).exists()
    assert claim(held.execution_id) is None


def test_a_second_time_is_refused(held: Claim) -> None:
    store.hand_on(held, closed())
    with pytest.raises(StaleExecution):
        store.hand_on(held, closed())
    assert Execution.objects.get(pk=held.execution_id).iterations.count() == 1


def test_an_iteration_that_does_not_follow_is_refused(held: Claim) -> None:
    with pytest.raises(StaleExecution, match="does not follow"):
        store.hand_on(held, closed(2))


def test_a_cancel_that_came_first_wins(held: Claim) -> None:
    Execution.objects.filter(pk=held.execution_id).update(cancel_requested_at=Now())
    with pytest.raises(RunCancelled):
        store.hand_on(held, closed())
    assert not Execution.objects.get(pk=held.execution_id).iterations.exists()

"""What health and doctor are told of the queue."""

import pytest

from agency.models import Execution, ProviderGate
from agency.models.clock import Now
from agency.runtime.claim import claim
from agency.runtime.queue_state import owner_states, queue_state, shut_gates
from tests.integration.runtime.conftest import Submit

pytestmark = pytest.mark.django_db


def test_an_empty_queue_has_no_lag() -> None:
    state = queue_state()
    assert (state.due, state.lag, state.later, state.claimed) == (0, 0.0, 0, 0)
    assert owner_states() == []
    assert shut_gates() == []


def test_due_claimed_and_later_rows_are_counted_and_the_oldest_gives_the_lag(submit: Submit) -> None:
    rows = [submit() for _ in range(5)]
    assert claim(rows[0].pk) is not None
    Execution.objects.filter(pk=rows[1].pk).update(next_run_at=Now(60))
    Execution.objects.filter(pk=rows[2].pk).update(next_run_at=Now(-90))
    Execution.objects.filter(pk=rows[3].pk).update(next_run_at=Now(-900), cancel_requested_at=Now())
    state = queue_state()
    assert (state.due, state.later, state.claimed) == (2, 1, 1)
    assert 90 <= state.lag < 120
    owners = {rows[n].owner_id for n in (0, 2, 4)}
    assert sum(one.due for one in owner_states()) == 2
    assert {one.owner for one in owner_states()} == owners


def test_a_gate_that_is_shut_is_named_with_the_time_it_has_left() -> None:
    ProviderGate.objects.create(provider="openai", not_before=Now(30), failures=6)
    ProviderGate.objects.create(provider="local", not_before=Now(-1))
    (gate,) = shut_gates()
    assert (gate.provider, gate.failures) == ("openai", 6)
    assert 28 < gate.seconds <= 30

"""Requests that nobody answers: warned of once, then closed, and the execution goes on or ends."""

from collections import Counter
from collections.abc import Callable

import pytest

from agency.execution import overdue
from agency.execution.invariants import violations
from agency.models import Execution, HumanRequest, clock
from agency.models.clock import Now
from agency.runtime import sweep
from agency.testing import run_until_parked
from tests.integration.human.conftest import Parked, answer, open_request, results

Bill = Callable[[], Counter[str]]
DAY = 86_400.0
pytestmark = pytest.mark.django_db


def make_overdue(execution: Execution) -> HumanRequest:
    execution.human_requests.filter(status="open").update(expires_at=Now(-1))
    return open_request(execution)


def test_a_confirmation_counts_as_rejected_and_the_run_goes_on(parked: Parked, bill: Bill) -> None:
    execution = parked('spend 1 & spend 2; {"a": "done"}')
    answer(execution, "approve", 1)
    request = make_overdue(execution)
    sweep.close()

    request.refresh_from_db()
    assert (request.status, request.closed_at is not None) == ("expired", True)
    done = run_until_parked(execution)
    assert done.status == "finished"
    why = "A person rejected this call: nobody answered in time, so it counts as rejected"
    assert results(done) == [("error", why), ("success", "spent 2")]
    assert (bill()["spend 1"], request.items.get(position=0).decided_by) == (0, None)
    assert violations(cap=5) == []


def test_any_other_request_ends_the_execution(parked: Parked) -> None:
    execution = parked("ask Which colour?; done")
    request = make_overdue(execution)
    sweep.close()

    execution.refresh_from_db()
    request.refresh_from_db()
    assert (execution.status, execution.failure_code) == ("failed", "request_expired")
    assert execution.failure_summary == "Nobody answered in time: Which colour?"
    assert request.status == "expired"
    assert [row.kind for row in execution.events.order_by("seq")][-2:] == [
        "human_request_expired",
        "execution_failed",
    ]
    assert violations(cap=5) == []


def test_a_request_is_warned_of_once_a_day_before(parked: Parked, monkeypatch: pytest.MonkeyPatch) -> None:
    execution = parked()
    monkeypatch.setattr(clock, "offset_seconds", 6 * DAY - 60)
    sweep.close()
    assert open_request(execution).warned_at is None

    monkeypatch.setattr(clock, "offset_seconds", 6 * DAY + 60)
    sweep.close()
    sweep.close()
    assert overdue.warn(open_request(execution).pk) is False
    assert open_request(execution).warned_at is not None
    assert execution.events.filter(kind="human_request_expiring").count() == 1
    assert answer(execution, "approve").refused is None
    assert run_until_parked(execution).status == "finished"
    assert violations(cap=5) == []


def test_a_request_that_lives_no_longer_than_the_warning_is_not_warned_of(
    parked: Parked, settings: object
) -> None:
    settings.AGENCY = {"REQUEST_EXPIRY_SECONDS": 3600.0}
    execution = parked()
    sweep.close()
    assert open_request(execution).warned_at is None


def test_what_was_answered_or_ended_in_the_meantime_does_not_expire(parked: Parked) -> None:
    execution = parked()
    request = open_request(execution)
    assert overdue.expire(request.pk) is False
    answer(execution, "approve")
    HumanRequest.objects.filter(pk=request.pk).update(expires_at=Now(-1))
    assert overdue.expire(request.pk) is False
    assert overdue.warn(request.pk) is False
    request.refresh_from_db()
    assert request.status == "answered"

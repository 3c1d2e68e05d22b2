"""Every event that is committed is said to be written, once, after the commit."""

from collections import defaultdict
from collections.abc import Iterator

import pytest
from django.db import transaction

from agency.execution import service
from agency.execution.signals import events_written
from agency.models import Execution
from agency.models.clock import Now
from agency.runtime import sweep
from agency.testing import run_until_parked
from tests.integration.human.conftest import Parked, Submit, answer

pytestmark = pytest.mark.django_db(transaction=True)
Heard = dict[str, list[int]]


@pytest.fixture
def heard() -> Iterator[Heard]:
    """The numbers that were said of each execution, in the order in which they were said."""
    numbers: Heard = defaultdict(list)

    def listen(execution_id: str, first: int, last: int, **_: object) -> None:
        written = Execution.objects.get(pk=execution_id).events.filter(seq__range=(first, last)).count()
        assert written == last - first + 1, "it is said before it is there"
        numbers[execution_id] += range(first, last + 1)

    events_written.connect(listen)
    yield numbers
    events_written.disconnect(listen)


def all_of(execution: Execution) -> list[int]:
    execution.refresh_from_db()
    return list(range(1, execution.event_seq + 1))


def test_a_run_with_two_attempts_says_each_of_its_events(heard: Heard, submit: Submit) -> None:
    execution = run_until_parked(submit('jot x; {"a": 1} | jot y; {"b": "done"}'))

    assert execution.status == "finished"
    assert heard[str(execution.pk)] == all_of(execution)


def test_a_run_that_parks_and_goes_on_says_each_of_its_events(heard: Heard, parked: Parked) -> None:
    execution = parked()
    assert heard[str(execution.pk)] == all_of(execution)
    answer(execution, "approve")
    assert run_until_parked(execution).status == "finished"

    assert heard[str(execution.pk)] == all_of(execution)


def test_a_request_that_expires_says_so_and_that_the_execution_failed(heard: Heard, parked: Parked) -> None:
    execution = parked("ask Which colour?; done")
    execution.human_requests.update(expires_at=Now(-1))
    sweep.close()

    execution.refresh_from_db()
    assert execution.status == "failed"
    assert heard[str(execution.pk)] == all_of(execution)


def test_a_cancel_of_what_nobody_runs_is_said(heard: Heard, submit: Submit) -> None:
    execution = submit()
    service.request_cancel(execution)

    execution.refresh_from_db()
    assert execution.status == "cancelled"
    assert heard[str(execution.pk)] == all_of(execution)


def test_what_is_rolled_back_is_not_said(heard: Heard, submit: Submit) -> None:
    execution = submit()
    with transaction.atomic():
        service.request_cancel(execution)
        assert heard == {}
        transaction.set_rollback(True)

    assert heard == {}


def test_a_listener_that_fails_harms_no_run(heard: Heard, submit: Submit) -> None:
    def fail(**_: object) -> None:
        raise ValueError("not today")

    events_written.connect(fail)
    try:
        execution = run_until_parked(submit())
    finally:
        events_written.disconnect(fail)

    assert execution.status == "finished"
    assert heard[str(execution.pk)] == all_of(execution)

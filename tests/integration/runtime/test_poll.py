"""A worker finds due executions in the database and keeps its places filled."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agency.execution import service
from agency.models import Execution
from agency.runtime.poll import Poller
from agency.runtime.slots import Slots
from tests.faults.processes import eventually
from tests.integration.runtime.conftest import Submit

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def polling() -> Iterator[Callable[[int], Slots]]:
    """`polling(places)`: a poller at work on a thread, stopped at the end of the test."""
    started: list[tuple[Poller, Slots, threading.Thread]] = []

    def start(places: int) -> Slots:
        slots = Slots(places)
        poller = Poller(slots)
        thread = threading.Thread(target=poller.run)
        thread.start()
        started.append((poller, slots, thread))
        return slots

    yield start
    for poller, slots, thread in started:
        poller.stop()
        thread.join(60)
        assert slots.wait_empty(60)


def finished() -> int:
    return Execution.objects.filter(status="finished").count()


def test_a_place_that_becomes_free_is_filled_without_waiting_for_the_next_look(
    submit: Submit, polling: Callable[[int], Slots], settings: Any
) -> None:
    settings.AGENCY = {"POLL_SECONDS": 3600}
    for _ in range(5):
        submit()
    polling(1)
    eventually(lambda: finished() == 5)


def test_no_more_run_at_once_than_there_are_places(
    submit: Submit, polling: Callable[[int], Slots], settings: Any, bill: Any
) -> None:
    settings.AGENCY = {"POLL_SECONDS": 0.02}
    for _ in range(3):
        submit("hang")
    polling(2)
    eventually(lambda: sum(line.startswith("hang") for line in bill()) == 2)
    assert Execution.objects.filter(claim_id__isnull=False).count() == 2
    for execution in Execution.objects.all():
        service.request_cancel(execution)
    eventually(lambda: Execution.objects.filter(status="cancelled").count() == 3)


def test_an_idle_worker_waits_for_its_next_look() -> None:
    idle = Slots(1)
    assert not Poller(idle).take()
    assert not idle.freed.is_set()
    assert idle.take()

"""What a process does when a thread does not stop, does not start, or dies of an error of its own."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connections, transaction

from agency.execution import service
from agency.models import Execution
from agency.models.clock import Now
from agency.runtime import beat as beats
from agency.runtime import sweep
from agency.runtime.beat import Beat
from agency.runtime.body import Outcome
from agency.runtime.poll import Poller
from agency.runtime.slots import Slots
from tests.faults.processes import eventually
from tests.integration.runtime.conftest import Submit
from tests.integration.runtime.test_stop import Running

pytestmark = pytest.mark.django_db(transaction=True)
QUICK = {"BEAT_SECONDS": 0.1, "LEASE_SECONDS": 60.0, "STUCK_SECONDS": 0.3}
HELD = 60.0


@pytest.fixture(autouse=True)
def own_beat(settings: Any) -> Iterator[Callable[..., Beat]]:
    settings.AGENCY = QUICK
    beats._beats.clear()
    yield beats.beat
    beats._beats.clear()


@pytest.fixture
def sulking(submit: Submit, bill: Any, tmp_path: Path) -> Iterator[Running]:
    """An execution whose tool does not come back before the end of the test."""
    running = Running(submit('sulk; {"a": "done"}'))
    eventually(lambda: any(line.startswith("sulk") for line in bill()))
    yield running
    (tmp_path / "free").touch()
    running.ended()


@contextmanager
def held(execution_id: str) -> Iterator[None]:
    """Somebody else's transaction holds the row."""
    holds, free = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Execution.objects.select_for_update().get(pk=execution_id)
            holds.set()
            free.wait(HELD)
        connections.close_all()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert holds.wait(60)
        yield
    finally:
        free.set()
        thread.join(60)


def swept(running: Running) -> Callable[[], str]:
    def status() -> str:
        sweep.recover()
        sweep.close()
        row = Execution.objects.get(pk=running.claim.execution_id)
        return row.status if row.is_terminal else ""

    return status


def test_a_cancel_ends_the_row_though_the_tool_does_not_listen_and_what_it_writes_late_is_refused(
    sulking: Running, tmp_path: Path, own_beat: Callable[..., Beat]
) -> None:
    execution = Execution.objects.get(pk=sulking.claim.execution_id)
    service.request_cancel(execution)
    assert eventually(swept(sulking)) == "cancelled"
    assert own_beat().stuck() == 1
    execution.refresh_from_db()
    (tmp_path / "free").touch()
    assert sulking.ended() is Outcome.LOST
    assert Execution.objects.get(pk=execution.pk).event_seq == execution.event_seq
    assert own_beat().stuck() == 0


def test_a_deadline_ends_the_row_though_the_tool_does_not_listen(sulking: Running) -> None:
    Execution.objects.update(deadline_at=Now(-1))
    assert eventually(swept(sulking)) == "failed"
    assert Execution.objects.get().failure_code == "deadline_exceeded"


def test_a_process_that_ends_gives_the_claims_of_stuck_runs_back_uncounted(
    sulking: Running, settings: Any
) -> None:
    settings.AGENCY = {**QUICK, "DRAIN_SECONDS": 0.1}
    places = Slots(1)
    assert places.take()
    assert not places.leave()
    row = Execution.objects.get()
    assert (row.status, row.claim_id, row.claim_count) == ("in_progress", None, 0)


def test_a_process_that_ends_does_not_wait_for_a_row_that_it_cannot_write(
    sulking: Running, settings: Any
) -> None:
    settings.AGENCY = {**QUICK, "DRAIN_SECONDS": 0.1}
    places = Slots(1)
    assert places.take()
    with held(sulking.claim.execution_id):
        begun = time.monotonic()
        assert not places.leave()
        assert time.monotonic() - begun < HELD / 2
    eventually(lambda: Execution.objects.get().claim_id is None)


def test_one_stuck_run_of_four_is_borne_and_two_are_not(submit: Submit, bill: Any, tmp_path: Path) -> None:
    places = Slots(4)
    stuck: list[Running] = []
    for expected in (False, True):
        stuck.append(Running(submit("sulk")))
        eventually(lambda: sum(line.startswith("sulk") for line in bill()) == len(stuck))
        service.request_cancel(Execution.objects.get(pk=stuck[-1].claim.execution_id))
        eventually(swept(stuck[-1]))
        assert places.has_too_many_stuck() is expected
    (tmp_path / "free").touch()
    assert [running.ended() for running in stuck] == [Outcome.LOST] * 2


@pytest.fixture
def no_more_threads(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """`no_more_threads(name)`: threads of this name cannot be started, as on a machine that is full."""
    start = threading.Thread.start

    def forbid(name: str) -> None:
        def refuse(thread: threading.Thread) -> None:
            if thread.name.startswith(name):
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", refuse)

    return forbid


def test_a_run_for_which_no_thread_starts_is_put_back_and_its_place_is_free(
    submit: Submit, no_more_threads: Callable[[str], None]
) -> None:
    execution = submit()
    places = Slots(1)
    no_more_threads("agency-run")
    assert not Poller(places).take()
    execution.refresh_from_db()
    assert (execution.claim_id, execution.claim_count) == (None, 0)
    assert places.take()


def test_a_run_without_a_beat_is_put_back(
    submit: Submit, no_more_threads: Callable[[str], None], own_beat: Callable[..., Beat]
) -> None:
    no_more_threads("agency-beat")
    running = Running(submit())
    assert running.ended() is Outcome.RELEASED
    assert Execution.objects.get().claim_count == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_beat_that_dies_of_an_error_is_started_again(submit: Submit, bill: Any, settings: Any) -> None:
    running = Running(submit("hang"))
    eventually(lambda: any(line.startswith("hang") for line in bill()))
    beaten = threading.Event()

    def breaks(thread_error: Any) -> None:
        beaten.set()

    before, threading.excepthook = threading.excepthook, breaks
    try:
        settings.AGENCY = {"UNKNOWN": 1}
        assert beaten.wait(60)
    finally:
        settings.AGENCY = QUICK
        threading.excepthook = before
    lease = Execution.objects.get().lease_until
    eventually(lambda: Execution.objects.get().lease_until > lease)
    service.request_cancel(Execution.objects.get())
    assert running.ended() is Outcome.CANCELLED

"""Two sessions that write to one execution, stepped so that the second meets every lock of the first.

PostgreSQL counts deadlocks, also those that a retry would hide; there must be none. Whoever comes first
wins, the other is told the truth, and an execution ends once.
"""

import itertools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection, connections

from agency.agent.events import Event, Message
from agency.enums import AlwaysFor, Effect, ExecutionStatus, Verdict
from agency.errors import RunCancelled, StaleExecution
from agency.execution import answering, overdue, record, service, store
from agency.execution.claims import Claim
from agency.execution.conversation import ClosedAttempt
from agency.execution.failure import ExecutionResult
from agency.human import requests
from agency.mission import allowing, looking, missions, schedules, signals, slots, waiting
from agency.mission.loop import Wait
from agency.models import ConfiguredAgent, Execution, HumanRequest, Mission, Schedule
from agency.models.clock import Now
from agency.runtime import sweep
from agency.runtime.claim import claim
from agency.testing import run_until_parked
from tests.faults.processes import eventually
from tests.integration.human.conftest import say
from tests.integration.mission.scheduled import due_schedule, make_due, mission_of
from tests.integration.mission.scripted import mission
from tests.integration.rows import an_ask
from tests.integration.runtime.conftest import Submit

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres_only]
Write = Callable[[Any], Any]


def said(claim: Claim) -> Event:
    return Event(execution_id=claim.execution_id, author="user", content=[Message(role="user", content="hi")])


def closed(verdict: Verdict) -> ClosedAttempt:
    return ClosedAttempt(n=1, verdict=verdict, summary="so it was", feedback="again")


def expire(claim: Claim) -> None:
    """The sweep of another process, which takes the claim for lost."""
    Execution.objects.filter(pk=claim.execution_id, claim_id=claim.claim_id).update(lease_until=Now(-1))
    sweep.recover()


WRITES: dict[str, Write] = {
    "record": lambda claim: record.record(claim, record.Entry("1:t:model", {"a": 1}, [said(claim)])),
    "intend": lambda claim: record.intend(claim, "1:t:jot:x", Effect.UNSAFE, "key"),
    "commit_attempt": lambda claim: store.commit_attempt(claim, closed(Verdict.RETRY)),
    "hand_on": lambda claim: store.hand_on(claim, closed(Verdict.CONTINUE)),
    "finish": lambda claim: store.finish(claim, ExecutionResult(True, {"a": 1}), closed(Verdict.PASSED)),
    "release": lambda claim: store.release(claim),
    "stop": lambda claim: store.cancel_claimed(claim),
    "cancel": lambda claim: service.request_cancel(Execution(pk=claim.execution_id)),
    "expire": expire,
    "close": lambda claim: sweep.close(),
}


HOLD_LOCKS = {"finish", "release", "expire"}
"""Writes of several statements here: a second session waits for them, or this test has seen nothing."""


def approve(request: HumanRequest) -> Any:
    return answering.answer(request.pk, [say(request, 0, "approve")], request.execution.owner)


def run_out(request: HumanRequest) -> bool:
    HumanRequest.objects.filter(pk=request.pk).update(expires_at=Now(-1))
    return overdue.expire(request.pk)


ANSWERS: dict[str, Write] = {
    "answer": approve,
    "expire": run_out,
    "cancel": lambda request: service.request_cancel(request.execution),
    "warn": lambda request: overdue.warn(request.pk),
    "close": lambda request: sweep.close(),
}


class Session:
    """A thread with a connection of its own that does one write. It can be held before its n-th statement."""

    def __init__(self, write: Write, about: Any, hold_before: int = 0) -> None:
        self.result: Any = None
        self.pid = 0
        self.held = threading.Event()
        self.go_on = threading.Event()
        self._statement = 0
        self._hold_before = hold_before
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(write, about), daemon=True)
        self._thread.start()
        assert self._ready.wait(30)

    def _run(self, write: Write, about: Any) -> None:
        try:
            connection.ensure_connection()
            self.pid = connection.connection.info.backend_pid
            self._ready.set()
            with connection.execute_wrapper(self._step):
                self.result = write(about)
        except (StaleExecution, RunCancelled) as refused:
            self.result = refused
        finally:
            self._ready.set()
            connections.close_all()

    def _step(self, execute: Callable[..., Any], *rest: Any) -> Any:
        self._statement += 1
        if self._statement == self._hold_before:
            self.held.set()
            assert self.go_on.wait(30)
        return execute(*rest)

    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def is_waiting(self) -> bool:
        """Whether the server says that it waits for a lock."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT wait_event_type FROM pg_stat_activity WHERE pid = %s", [self.pid])
            row = cursor.fetchone()
        return row is not None and row[0] == "Lock"


@dataclass(frozen=True)
class Meeting:
    """What two sessions made of `about`, what each was told, and whether the second waited for the first."""

    about: Any
    waited: bool
    told: dict[str, Any]


def deadlocks() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        return cursor.fetchone()[0]


def met(first: str, second: str, writes: dict[str, Write], prepare: Callable[[], Any]) -> Iterator[Meeting]:
    """`second` beside `first`, held before each of its statements in turn."""
    for step in itertools.count(1):
        about = prepare()
        one = Session(writes[first], about, hold_before=step)
        eventually(lambda one=one: one.held.is_set() or one.has_ended())
        two = Session(writes[second], about)
        eventually(lambda two=two: two.has_ended() or two.is_waiting())
        waited = not two.has_ended()
        one.go_on.set()
        eventually(lambda one=one, two=two: one.has_ended() and two.has_ended())
        yield Meeting(about, waited, {first: one.result, second: two.result})
        if not one.held.is_set():
            return


@pytest.mark.parametrize("first", WRITES)
def test_no_two_writes_lock_each_other_out(first: str, submit: Submit) -> None:
    def claimed() -> Claim:
        made = claim(submit().pk)
        assert made is not None
        return made

    before, waited = deadlocks(), 0
    for second in WRITES.keys() - {first}:
        for meeting in met(first, second, WRITES, claimed):
            check_the_answers(Execution.objects.get(pk=meeting.about.execution_id), meeting.told)
            waited += meeting.waited
    assert deadlocks() == before
    assert waited or first not in HOLD_LOCKS


@pytest.mark.parametrize("first", ANSWERS)
def test_an_answer_an_expiry_and_a_cancel_never_lock_each_other_out(first: str, submit: Submit) -> None:
    def asked() -> HumanRequest:
        waiting = run_until_parked(submit('spend 5; {"a": "done"}'))
        return HumanRequest.objects.select_related("execution__owner").get(execution=waiting, status="open")

    before = deadlocks()
    for second in ANSWERS.keys() - {first}:
        for meeting in met(first, second, ANSWERS, asked):
            request, told = HumanRequest.objects.get(pk=meeting.about.pk), meeting.told
            execution = request.execution
            assert (request.status == "open") == (execution.status == "interrupted")
            check_the_answers(execution, told)
            if "answer" in told:
                assert (told["answer"].refused is None) == (request.status == "answered")
            if told.get("expire") is True:
                assert request.status == "expired"
    assert deadlocks() == before


@dataclass(frozen=True)
class Scheduled:
    """A schedule whose next slot has come, and the claim of the execution before, which the slot cancels."""

    schedule: Schedule
    claim: Claim


SLOTS: dict[str, Write] = {
    "slot": lambda about: slots.run_due(),
    "pause": lambda about: schedules.pause(about.schedule),
    "delete": lambda about: schedules.delete(about.schedule),
    "remove": lambda about: missions.remove(about.schedule.mission),
    "finish": lambda about: store.finish(about.claim, ExecutionResult(True, {"a": 1})),
    "cancel": lambda about: service.request_cancel(Execution(pk=about.claim.execution_id)),
}


@pytest.mark.parametrize("other", ["pause", "delete", "remove", "finish", "cancel"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_slot_and_what_people_and_workers_write_never_lock_each_other_out(
    other: str, is_first: bool, clerk: ConfiguredAgent
) -> None:
    def prepare() -> Scheduled:
        Schedule.objects.all().delete()
        schedule = due_schedule(mission_of(clerk), ago=2, overlap="cancel_previous")
        slots.run_due()
        made = claim(schedule.slots.get().execution_id)
        assert made is not None
        make_due(schedule)
        return Scheduled(schedule, made)

    before = deadlocks()
    for meeting in met(*((other, "slot") if is_first else ("slot", other)), SLOTS, prepare):
        slots.run_due()
        schedule = Schedule.objects.filter(pk=meeting.about.schedule.pk)
        assert schedule.exists() == (other != "delete")
        brought = Execution.objects.filter(schedule_slot__schedule=meeting.about.schedule)
        assert brought.filter(finished_at=None, cancel_requested_at=None).count() <= 1
        assert schedule.filter(slots__outcome="dispatched").count() == brought.count()
        if other in {"finish", "cancel"}:
            assert brought.count() == 2
        if other == "remove":
            assert schedule.get().mission.archived_at is not None and schedule.get().is_paused
    assert deadlocks() == before


def allow(schedule: Schedule) -> Any:
    """Answer what the execution of the newest slot asks, for all of its mission."""
    request = HumanRequest.objects.get(execution__schedule_slot__schedule=schedule)
    given = say(request, 0, "approve", always=True, always_for=AlwaysFor.MISSION)
    return answering.answer(request.pk, [given], request.execution.owner)


ALLOWANCES: dict[str, Write] = {
    "allow": allow,
    "revoke": lambda schedule: allowing.revoke(schedule.mission, "pay"),
    "change": lambda schedule: missions.update(schedule.mission, name="Changed"),
    "slot": lambda schedule: slots.run_due(),
}


@pytest.mark.parametrize("other", ["revoke", "change", "slot"])
@pytest.mark.parametrize("is_first", [True, False])
def test_an_answer_that_counts_for_a_whole_mission_locks_nobody_out(
    other: str, is_first: bool, clerk: ConfiguredAgent
) -> None:
    def asked() -> Schedule:
        Schedule.objects.all().delete()
        schedule = due_schedule(mission_of(clerk), ago=2, overlap="cancel_previous")
        slots.run_due()
        row = schedule.slots.get().execution
        Execution.objects.filter(pk=row.pk).update(status="interrupted", next_run_at=None)
        requests.open_request(row.pk, 1, an_ask("pay"), 3600.0)
        make_due(schedule)
        return schedule

    before = deadlocks()
    for meeting in met(*((other, "allow") if is_first else ("allow", other)), ALLOWANCES, asked):
        mission = Mission.objects.get(pk=meeting.about.mission_id)
        answered = meeting.told["allow"].refused is None
        assert answered or other == "slot"
        if other != "revoke":
            assert mission.always_allow == ({"pay": True} if answered else {})
        elif meeting.told["revoke"]:
            assert mission.always_allow == {"pay": False}
        else:
            assert mission.always_allow == {"pay": True}
        assert (mission.name == "Changed") == (other == "change")
    assert deadlocks() == before


def check_the_answers(execution: Execution, told: dict[str, Any]) -> None:
    """What each caller was told is what the row says."""
    execution.refresh_from_db()
    ends = list(execution.events.filter(kind__in=["execution_finished", "execution_cancelled"]))
    assert len(ends) == execution.is_terminal
    finish, cancel = told.get("finish"), told.get("cancel")
    if isinstance(finish, ExecutionStatus):
        assert finish == execution.status
    if isinstance(cancel, ExecutionStatus):
        # Not ended yet when the cancel was asked for: then the cancel decides how it ends.
        asked = {ExecutionStatus.CANCELLED} if cancel.is_terminal is False else {cancel}
        assert not execution.is_terminal or execution.status in asked


WAITS: dict[str, Write] = {
    "signal": lambda row: signals.send(row, "stock", 1, row.owner),
    "run_now": lambda row: waiting.run_now(row, row.owner),
    "look": lambda row: look(row),
    "cancel": lambda row: service.request_cancel(row),
    "close": lambda row: sweep.close(),
}


def look(row: Execution) -> bool:
    """The worker that finds the wait's timeout."""
    made = claim(row.pk)
    return made is not None and made.is_waiting and looking.look(made, lambda: False)


@pytest.mark.parametrize("first", WAITS)
def test_whatever_ends_a_wait_never_locks_another_out(first: str, clerk: ConfiguredAgent) -> None:
    loop = mission(clerk, loop_prompt="Go.")

    def waits() -> Execution:
        made = claim(loop.dispatch().pk)
        assert made is not None
        waiting.enter(made, closed(Verdict.WAIT), Wait(signal="stock"), timeout=0.001)
        return Execution.objects.select_related("owner").get(pk=made.execution_id)

    before = deadlocks()
    for second in WAITS.keys() - {first}:
        for meeting in met(first, second, WAITS, waits):
            row = Execution.objects.get(pk=meeting.about.pk)
            assert row.events.filter(kind="mission_loop_resumed").count() <= 1
            if "cancel" not in meeting.told:
                assert row.loop_status == "running"
    assert deadlocks() == before

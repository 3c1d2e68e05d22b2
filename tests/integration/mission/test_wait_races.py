"""What ends a wait at the same moment as something else: one of them wins, nothing is lost or done twice."""

import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from agency.enums import EventKind, Verdict
from agency.errors import StaleExecution
from agency.execution import service, store
from agency.execution.claims import Claim
from agency.execution.conversation import ClosedAttempt
from agency.execution.failure import ExecutionResult
from agency.execution.invariants import violations
from agency.execution.metadata import OPENING, WAIT
from agency.mission import extending, looking, signals, waiting
from agency.mission.loop import Wait
from agency.models import ConfiguredAgent, Execution, Thread
from agency.models.clock import Now, database_now
from agency.runtime.claim import claim
from agency.runtime.dispatcher import mark_due
from tests.integration.mission.scripted import mission

pytestmark = pytest.mark.django_db(transaction=True)
AtOnce = Callable[..., list[Any]]
ROUNDS = 25


def go_on() -> bool:
    return False


def closed(n: int = 1) -> ClosedAttempt:
    return ClosedAttempt(n, Verdict.WAIT, "must wait", kind=EventKind.ITERATION_COMPLETED)


def claimed(agent: ConfiguredAgent, **fields: Any) -> Claim:
    """A loop whose first iteration runs."""
    made = claim(mission(agent, loop_prompt="Go.", **fields).dispatch().pk)
    assert made is not None
    return made


def waiting_row(agent: ConfiguredAgent, wait: Wait) -> Execution:
    made = claimed(agent)
    looking.begin(made, closed(), wait, go_on)
    return Execution.objects.get(pk=made.execution_id)


def time_passes(row: Execution) -> None:
    past = (database_now() - timedelta(seconds=1)).isoformat()
    kept = {**row.metadata[WAIT], "until": past}
    Execution.objects.filter(pk=row.pk).update(next_run_at=Now(-1), metadata={**row.metadata, WAIT: kept})


def ended_by(row: Execution) -> list[str]:
    ends = row.events.filter(kind=EventKind.LOOP_RESUMED.value).order_by("seq")
    return [event.data["by"] for event in ends]


def test_a_signal_and_the_commit_of_the_wait_for_it_always_meet(
    agent: ConfiguredAgent, at_once: AtOnce
) -> None:
    first: Counter[bool] = Counter()
    for n in range(ROUNDS):
        made = claimed(agent)
        row = Execution(pk=made.execution_id)
        _, sent = at_once(
            lambda made=made: looking.begin(made, closed(), Wait(signal="stock"), go_on),
            lambda row=row, n=n: signals.send(row, "stock", n),
        )
        row.refresh_from_db()
        assert (row.loop_status, row.claim_id, WAIT in row.metadata) == ("running", None, False)
        assert row.next_run_at is not None
        assert ended_by(row) == ["signal"]
        assert str(n) in row.metadata[OPENING]["message"]
        assert row.signals.get().consumed_iteration == 2
        first[sent.ended_wait] += 1
    assert first.total() == ROUNDS
    assert violations(5) == []


def test_of_two_signals_one_ends_the_wait_and_the_other_is_kept(
    agent: ConfiguredAgent, at_once: AtOnce
) -> None:
    for _ in range(ROUNDS):
        row = waiting_row(agent, Wait(signal="stock"))
        sent = at_once(
            lambda row=row: signals.send(row, "stock", "one"),
            lambda row=row: signals.send(row, "stock", "other"),
        )
        assert sorted(one.ended_wait for one in sent) == [False, True]
        row.refresh_from_db()
        assert ended_by(row) == ["signal"]
        heard = row.signals.get(consumed_iteration=2)
        assert heard.payload in row.metadata[OPENING]["message"]
        assert row.signals.get(consumed_iteration=None).pk != heard.pk
    assert violations(5) == []


def test_a_person_and_the_worker_that_notices_the_timeout_end_a_wait_once(
    agent: ConfiguredAgent, at_once: AtOnce
) -> None:
    won: Counter[str] = Counter()
    for _ in range(ROUNDS):
        row = waiting_row(agent, Wait(signal="stock"))
        time_passes(row)

        def notice(row: Execution = row) -> bool:
            made = claim(row.pk)
            if made is None or not made.is_waiting:
                return False
            return looking.look(made, go_on)

        noticed, ran = at_once(notice, lambda row=row: waiting.run_now(row, agent.owner))
        assert noticed is (ran.refused is not None)
        (by,) = ended_by(row)
        assert by == ("timeout" if noticed else "run_now")
        won[by] += 1
    assert won.total() == ROUNDS
    assert violations(5) == []


def test_a_signal_and_a_person_end_a_wait_once(agent: ConfiguredAgent, at_once: AtOnce) -> None:
    for _ in range(ROUNDS):
        row = waiting_row(agent, Wait(signal="stock"))
        sent, ran = at_once(
            lambda row=row: signals.send(row, "stock", "news"),
            lambda row=row: waiting.run_now(row, agent.owner),
        )
        assert sent.refused is None
        assert sent.ended_wait is (ran.refused is not None)
        assert ended_by(row) == ["signal" if sent.ended_wait else "run_now"]
    assert violations(5) == []


def test_a_cancel_and_a_signal_leave_one_outcome(agent: ConfiguredAgent, at_once: AtOnce) -> None:
    for _ in range(ROUNDS):
        row = waiting_row(agent, Wait(signal="stock"))
        sent, _ = at_once(
            lambda row=row: signals.send(row, "stock"), lambda row=row: service.request_cancel(row)
        )
        row.refresh_from_db()
        assert (row.status, row.loop_status) == ("cancelled", "cancelled")
        assert ended_by(row) == (["signal"] if sent.ended_wait else [])
    assert violations(5) == []


def test_of_two_extensions_one_is_granted(agent: ConfiguredAgent, at_once: AtOnce) -> None:
    for _ in range(ROUNDS):
        made = claimed(agent, max_iterations=1)
        limit = ExecutionResult(False, failure_code="limit_reached", failure_summary="All used.")
        store.finish(made, limit, ClosedAttempt(1, Verdict.CONTINUE, "more", feedback="Sort B."))
        row = Execution.objects.get(pk=made.execution_id)
        both = at_once(
            lambda pk=row.pk: extending.extend(Execution.objects.get(pk=pk), 2, agent.owner),
            lambda pk=row.pk: extending.extend(Execution.objects.get(pk=pk), 5, agent.owner),
        )
        (granted,) = [one for one in both if one.refused is None]
        row.refresh_from_db()
        assert (row.generation, row.max_iterations) == (2, granted.execution.max_iterations)
        assert row.max_iterations in {3, 6}
    assert violations(5) == []


def test_a_look_that_was_taken_for_lost_writes_nothing(agent: ConfiguredAgent) -> None:
    row = waiting_row(agent, Wait(signal="stock"))
    time_passes(row)
    old = claim(row.pk)
    Execution.objects.filter(pk=row.pk).update(lease_until=Now(-1))
    new = claim(row.pk)
    assert old is not None and new is not None and new.is_waiting
    with pytest.raises(StaleExecution):
        looking.look(old, go_on)
    assert looking.look(new, go_on) is True
    assert ended_by(row) == ["timeout"]
    assert violations(5) == []


def test_ten_thousand_waiting_missions_hold_nobody(agent: ConfiguredAgent) -> None:
    """No claim, no wake-up and no seat; a look for work passes them by."""
    like = waiting_row(agent, Wait(seconds=86_400))
    threads = [Thread(owner=agent.owner, agent=agent) for _ in range(10_000)]
    Thread.objects.bulk_create(threads, batch_size=2_000)
    copied = {
        name: getattr(like, name)
        for name in ("owner", "agent", "mission", "status", "loop_status", "provider", "config", "metadata")
    }
    rows = [
        Execution(**copied, thread=thread, next_run_at=like.next_run_at, max_iterations=10)
        for thread in threads
    ]
    Execution.objects.bulk_create(rows, batch_size=1_000)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE agency_execution")
    assert not Execution.objects.filter(claim_id__isnull=False).exists()
    took = []
    for _ in range(20):
        began = time.process_time()
        assert claim() is None
        assert mark_due() == []
        took.append(time.process_time() - began)
    assert sorted(took)[len(took) // 2] < 0.1
    sent = signals.send(rows[5_000], "anything")
    assert sent.refused is None
    waiting.run_now(rows[5_000], agent.owner)
    made = claim()
    assert made is not None and made.execution_id == str(rows[5_000].pk)

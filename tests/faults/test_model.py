"""Claims, commits, pauses, answers, sweeps and cancels in any order, by claimers that act out of turn.

A plain model says what the rows must be.

The clock is a variable. It moves by 40 s; leases, pauses and deadlines end 20 s after such a moment, so
that the seconds that really pass decide nothing.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from agency.agent.events import ToolCall
from agency.agent.result import Asked
from agency.enums import TERMINAL_STATUSES, Verdict
from agency.errors import RunCancelled, StaleExecution
from agency.execution import answering, service, store
from agency.execution.claims import Claim
from agency.execution.conversation import ClosedAttempt
from agency.execution.failure import ExecutionResult
from agency.execution.invariants import violations
from agency.human.asking import about_calls
from agency.models import ConfiguredAgent, Execution, HumanRequest, clock
from agency.runtime import sweep
from agency.runtime.beat import Beat
from agency.runtime.claim import claim
from agency.runtime.watch import StopReason, Watch
from tests.integration.human.conftest import say

TICK = 40
LEASE = 60
PAUSE = 20
DEADLINE = 300
CAP = 2
ELSEWHERE = "another machine|1|1|a"
_CALL = ToolCall(tool_call_id="c", name="ask_human", arguments={"question": "Well?"})
QUESTION = about_calls([Asked(_CALL, {"type": "string"}, is_question=True)], "Clerk")
ENDED = {status.value for status in TERMINAL_STATUSES}


@dataclass
class Twin:
    """What an execution's row must say."""

    status: str = "pending"
    due: int | None = 0
    holder: Claim | None = None
    lease: int = 0
    count: int = 0
    fence: int = 0
    iteration: int = 0
    started: int = 0
    deadline: int | None = None
    cancel: bool = False
    code: str | None = None
    asked: int = 0
    expires: int = 0
    requests: list[HumanRequest] = field(default_factory=list[HumanRequest])
    claims: list[Claim] = field(default_factory=list[Claim])

    def is_fit(self, now: int) -> bool:
        return not self.cancel and self.count < CAP and (self.deadline is None or self.deadline > now)

    def is_due(self, now: int) -> bool:
        return self.due is not None and self.due <= now and self.is_fit(now)

    def is_idle(self, now: int) -> bool:
        return self.status not in ENDED and (self.holder is None or self.lease < now)

    def free(self, due: int | None) -> None:
        self.due, self.holder = due, None

    def end(self, status: str, code: str | None = None) -> None:
        self.free(None)
        self.status, self.code = status, code


class Claims(RuleBasedStateMachine):
    agent: ConfiguredAgent

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, Twin] = {}
        self.now = 0
        self.atomic = transaction.atomic()
        self.atomic.__enter__()

    def teardown(self) -> None:
        broken = [str(one) for one in violations(CAP)]
        clock.offset_seconds = 0.0
        transaction.set_rollback(True)
        self.atomic.__exit__(None, None, None)
        assert broken == []

    @initialize(rows=st.integers(1, 2))
    def begin(self, rows: int) -> None:
        for _ in range(rows):
            self.submit()
            self.claim_next()

    def claims(self) -> list[tuple[Twin, Claim]]:
        return [(twin, claim) for twin in self.rows.values() for claim in twin.claims]

    def any_claim(self, data: Any) -> tuple[Twin, Claim]:
        return data.draw(st.sampled_from(self.claims()), label="claim")

    def any_row(self, data: Any) -> tuple[str, Twin]:
        return data.draw(st.sampled_from(list(self.rows.items())), label="row")

    @precondition(lambda self: len(self.rows) < 3)
    @rule()
    def submit(self) -> None:
        execution = service.submit("fault-errand", self.agent, {"task": "x"}).execution
        self.rows[str(execution.pk)] = Twin(due=self.now)

    @rule(ticks=st.integers(1, 3))
    def time_passes(self, ticks: int) -> None:
        self.now += ticks * TICK
        clock.offset_seconds = float(self.now)

    @rule()
    def claim_next(self) -> None:
        due = {key for key, twin in self.rows.items() if twin.is_due(self.now)}
        got = claim()
        assert (got is not None) == bool(due)
        if got is not None:
            assert got.execution_id in due
            self.taken(got)

    @precondition(lambda self: self.rows)
    @rule(data=st.data(), outdated=st.booleans())
    def claim_by_id(self, data: Any, outdated: bool) -> None:
        key, twin = self.any_row(data)
        lapsed = twin.holder is not None and twin.lease < self.now and twin.is_fit(self.now)
        expected = not outdated and (twin.is_due(self.now) or lapsed)
        got = claim(key, twin.iteration + (2 if outdated else 1))
        assert (got is not None) == expected
        if got is not None:
            self.taken(got)

    def taken(self, got: Claim) -> None:
        twin = self.rows[got.execution_id]
        # Another machine's: this process must not judge it by its own runs.
        Execution.objects.filter(pk=got.execution_id).update(claim_owner=ELSEWHERE)
        twin.status, twin.due, twin.holder, twin.lease = "in_progress", None, got, self.now + LEASE
        twin.count += 1
        twin.fence += 1
        if twin.deadline is None:
            twin.started, twin.deadline = self.now, self.now + DEADLINE
        twin.claims.append(got)
        assert (got.fence, got.iteration) == (twin.fence, twin.iteration + 1)

    @precondition(lambda self: self.claims())
    @rule(data=st.data())
    def beat(self, data: Any) -> None:
        twin, held = self.any_claim(data)
        watch = Watch(held, LEASE)
        Beat()._renew({held.claim_id: watch})
        if twin.holder is not held:
            assert watch.reason == StopReason.LOST
            return
        twin.lease = self.now + LEASE
        late = twin.deadline is not None and twin.deadline < self.now
        wanted = StopReason.CANCELLED if twin.cancel else StopReason.DEADLINE if late else None
        assert watch.reason == wanted

    @precondition(lambda self: self.claims())
    @rule(data=st.data())
    def commit_attempt(self, data: Any) -> None:
        twin, held = self.any_claim(data)
        closed = ClosedAttempt(n=twin.iteration + 1, verdict=Verdict.RETRY, summary="so", feedback="again")
        if twin.holder is not held:
            with pytest.raises(StaleExecution):
                store.commit_attempt(held, closed)
        elif twin.cancel:
            with pytest.raises(RunCancelled):
                store.commit_attempt(held, closed)
        else:
            store.commit_attempt(held, closed)
            twin.iteration += 1
            twin.count = 0

    @precondition(lambda self: self.claims())
    @rule(data=st.data(), success=st.booleans())
    def finish(self, data: Any, success: bool) -> None:
        twin, held = self.any_claim(data)
        closed = ClosedAttempt(n=twin.iteration + 1, verdict=Verdict.PASSED, summary="so")
        result = ExecutionResult(success, {"a": 1}, None if success else "validation_failed")
        if twin.holder is not held:
            with pytest.raises(StaleExecution):
                store.finish(held, result, closed)
            return
        status = store.finish(held, result, closed)
        assert status == ("cancelled" if twin.cancel else "finished" if success else "failed")
        twin.iteration += 1
        twin.end(status.value, "validation_failed" if status == "failed" else None)

    @precondition(lambda self: self.claims())
    @rule(data=st.data(), pause=st.sampled_from([0, PAUSE]), lost=st.booleans())
    def release(self, data: Any, pause: int, lost: bool) -> None:
        twin, held = self.any_claim(data)
        if twin.holder is not held:
            with pytest.raises(StaleExecution):
                store.release(held, delay=pause, lost=lost)
            return
        store.release(held, delay=pause, lost=lost)
        twin.free(self.now + pause)
        twin.count -= 0 if lost else min(1, twin.count)

    @precondition(lambda self: self.claims())
    @rule(data=st.data())
    def stop(self, data: Any) -> None:
        twin, held = self.any_claim(data)
        if twin.holder is not held:
            with pytest.raises(StaleExecution):
                store.cancel_claimed(held)
            return
        assert store.cancel_claimed(held) == twin.cancel
        if twin.cancel:
            twin.end("cancelled")

    @precondition(lambda self: self.claims())
    @rule(data=st.data(), patience=st.sampled_from([LEASE, 10 * LEASE]))
    def park(self, data: Any, patience: int) -> None:
        self.parked(*self.any_claim(data), patience)

    def parked(self, twin: Twin, held: Claim, patience: int) -> None:
        if twin.holder is not held:
            with pytest.raises(StaleExecution):
                store.park(held, QUESTION, patience)
            return
        assert store.park(held, QUESTION, patience) == (not twin.cancel)
        if not twin.cancel:
            twin.free(None)
            twin.status, twin.asked, twin.expires = "interrupted", self.now, self.now + patience
            twin.count -= min(1, twin.count)
            twin.requests.append(HumanRequest.objects.get(execution=held.execution_id, status="open"))

    @precondition(lambda self: any(twin.requests for twin in self.rows.values()))
    @rule(data=st.data())
    def answer(self, data: Any) -> None:
        asked = [(twin, request) for twin in self.rows.values() for request in twin.requests]
        self.answered(*data.draw(st.sampled_from(asked), label="request"))

    def answered(self, twin: Twin, request: HumanRequest) -> None:
        is_open = twin.status == "interrupted" and request is twin.requests[-1] and twin.expires > self.now
        told = answering.answer(request.pk, [say(request, 0, "answer", answer="yes")], self.agent.owner)
        assert (told.refused is None) == is_open
        if is_open:
            twin.free(self.now)
            twin.status = "in_progress"
            twin.deadline = None if twin.deadline is None else twin.deadline + self.now - twin.asked

    @precondition(lambda self: any(twin.holder for twin in self.rows.values()))
    @rule()
    def a_person_takes_their_time(self) -> None:
        twin = next(twin for twin in self.rows.values() if twin.holder)
        assert twin.holder is not None
        self.parked(twin, twin.holder, 10 * LEASE)
        self.time_passes(1)
        if twin.requests:
            self.answered(twin, twin.requests[-1])

    @precondition(lambda self: self.rows)
    @rule(data=st.data())
    def cancel(self, data: Any) -> None:
        key, twin = self.any_row(data)
        if twin.status not in ENDED:
            twin.cancel = True
            if twin.is_idle(self.now):
                twin.end("cancelled")
        assert service.request_cancel(Execution.objects.get(pk=key)) == twin.status

    @rule()
    def every_worker_dies(self) -> None:
        self.time_passes(2)
        self.recover()

    @rule()
    def recover(self) -> None:
        sweep.recover()
        for twin in self.rows.values():
            if twin.holder is not None and twin.lease < self.now:
                twin.free(self.now)

    @rule()
    def close(self) -> None:
        sweep.close()
        for twin in self.rows.values():
            if not twin.is_idle(self.now):
                continue
            if twin.cancel:
                twin.end("cancelled")
            elif twin.status == "interrupted":
                if twin.expires < self.now:
                    twin.end("failed", "request_expired")
            elif twin.deadline is not None and twin.deadline < self.now:
                twin.end("failed", "deadline_exceeded")
            elif twin.count >= CAP:
                twin.end("failed", "crash_loop")

    @invariant()
    def the_rows_are_as_the_model_says(self) -> None:
        for row in Execution.objects.all():
            twin = self.rows[str(row.pk)]
            assert (row.status, row.failure_code, row.iteration) == (twin.status, twin.code, twin.iteration)
            assert (row.fence, row.claim_count) == (twin.fence, twin.count)
            assert row.claim_id == (twin.holder.claim_id if twin.holder else None)
            assert (row.next_run_at is not None) == (twin.due is not None)
            assert (row.cancel_requested_at is not None) == twin.cancel
            if row.deadline_at is not None:
                granted = (row.deadline_at - row.started_at).total_seconds()
                assert abs(granted - (twin.deadline - twin.started)) < TICK / 2


@pytest.fixture
def machine(clerk: ConfiguredAgent, settings: Any) -> type[Claims]:
    settings.AGENCY = {"LEASE_SECONDS": LEASE, "DEADLINE_SECONDS": DEADLINE, "CLAIM_CAP": CAP}
    return type("OwnClaims", (Claims,), {"agent": clerk})


@pytest.mark.django_db
def test_no_order_of_claims_commits_sweeps_and_cancels_leaves_the_model(machine: type[Claims]) -> None:
    fast = connection.vendor == "sqlite"
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=40 if fast else 15,
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )

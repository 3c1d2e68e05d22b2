"""Writes what becomes of an execution: attempts, endings, releases. One guarded transaction each.

Whoever holds the claim writes by it; rows that nobody holds are closed by `close_cancelled` and
`close_failed`. A write that finds the row moved on raises `StaleExecution` and leaves nothing.
"""

import uuid
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q

from agency.agent.events import Usage
from agency.agent.text import cut
from agency.enums import EventKind, ExecutionStatus, HumanRequestStatus, LoopStatus, Verdict
from agency.errors import StaleExecution
from agency.execution.claims import Claim, database, locked, owned, settled
from agency.execution.conversation import ClosedAttempt
from agency.execution.failure import ExecutionFailureCode, ExecutionResult
from agency.execution.ledger import NOTICE_LIMIT, SUMMARY_LIMIT, advance
from agency.execution.lifecycle import sources
from agency.execution.signals import execution_due, execution_finished, say_written
from agency.execution.spending import open_usage
from agency.execution.storable import storable
from agency.human import requests
from agency.human.asking import Ask
from agency.models import Event, Execution, Iteration
from agency.models.clock import Now, database_now

FREE = {"claim_id": None, "claim_owner": None, "lease_until": None}
_ENDINGS = {
    ExecutionStatus.FINISHED: (EventKind.FINISHED, LoopStatus.COMPLETED),
    ExecutionStatus.FAILED: (EventKind.FAILED, LoopStatus.FAILED),
    ExecutionStatus.CANCELLED: (EventKind.CANCELLED, LoopStatus.CANCELLED),
}
_LOOP_ENDINGS = {
    LoopStatus.COMPLETED: EventKind.LOOP_COMPLETED,
    LoopStatus.FAILED: EventKind.LOOP_FAILED,
    LoopStatus.CANCELLED: EventKind.LOOP_CANCELLED,
    LoopStatus.LIMIT_REACHED: EventKind.LOOP_LIMIT_REACHED,
}
HELD = "held"
FIRST_HOLD, LONGEST_HOLD = 30.0, 600.0
_TICK = timedelta(milliseconds=1)
ANNOUNCE_SECONDS = 60.0
"""How long listeners may take before the sweep believes that whoever told them has died."""


def commit_attempt(claim: Claim, closed: ClosedAttempt) -> None:
    """Commit an attempt and keep the claim for the next one; the count of lost claims starts anew."""

    def write() -> bool:
        advance(claim, closed)
        return True

    settled(write, lambda: _committed(claim, closed.n), single=True)
    claim.iteration = closed.n + 1


def hand_on(claim: Claim, closed: ClosedAttempt, delay: float = 0.0) -> None:
    """Commit an iteration and give the claim back in one: the next iteration is due in `delay` seconds."""

    def write() -> bool:
        advance(claim, closed, due_in=delay)
        return True

    settled(write, lambda: _committed(claim, closed.n), single=True)
    claim.iteration = closed.n + 1
    if delay <= 0:
        _due(claim)


def finish(
    claim: Claim,
    result: ExecutionResult,
    closed: ClosedAttempt | None = None,
    after: Usage | None = None,
    columns: dict[str, Any] | None = None,
) -> ExecutionStatus:
    """End the execution with its result and its last attempt; returns the status that was committed.

    A cancel that arrived before the commit wins: the row ends as cancelled. `after` is what was spent
    outside of any attempt, on the summary of a failure; `columns` are others, of JSON, that the row gets.
    """

    def write() -> ExecutionStatus:
        row = locked(owned(claim), str(claim))
        if row.cancel_requested_at is not None:
            return end(row, ExecutionStatus.CANCELLED, claim=claim, closed=closed, after=after)
        if result.success:
            return end(
                row,
                ExecutionStatus.FINISHED,
                claim=claim,
                closed=closed,
                output=result.output,
                columns=columns,
            )
        return end(
            row,
            ExecutionStatus.FAILED,
            claim=claim,
            closed=closed,
            after=after,
            output=result.output or None,
            code=result.failure_code or ExecutionFailureCode.UNKNOWN,
            summary=result.failure_summary,
            columns=columns,
        )

    status = settled(write, lambda: _ended(claim))
    announce(claim.execution_id)
    return status


def cancel_claimed(claim: Claim, closed: ClosedAttempt | None = None) -> bool:
    """End the claimed execution as cancelled if that was asked for; `False` if it was not."""

    def write() -> bool:
        row = locked(owned(claim), str(claim))
        if row.cancel_requested_at is None:
            return False
        end(row, ExecutionStatus.CANCELLED, claim=claim, closed=closed)
        return True

    done = settled(write, lambda: True if _ended(claim) == ExecutionStatus.CANCELLED else None)
    if done:
        announce(claim.execution_id)
    return done


def release(
    claim: Claim,
    *,
    delay: float = 0.0,
    lost: bool = False,
    metadata: dict[str, Any] | None = None,
) -> None:
    """Give the claim back: the row is due again in `delay` seconds.

    The claim does not count towards the crash-loop cap unless it was `lost`. `metadata` is merged into
    the row's.
    """

    def write() -> bool:
        row = locked(owned(claim), str(claim))
        count = row.claim_count if lost else max(row.claim_count - 1, 0)
        merged = {**row.metadata, **(metadata or {})}
        update(row, **FREE, next_run_at=Now(delay), claim_count=count, metadata=merged)
        if delay <= 0:
            _due(claim)
        return True

    settled(write, lambda: None if _is_claimed(claim) else True)


def _due(claim: Claim) -> None:
    execution_due.send(
        Execution,
        execution_id=claim.execution_id,
        expected_iteration=claim.iteration,
        wakeup=claim.wakeup,
    )


def hold(claim: Claim, reason: str) -> float:
    """Give back a row that this code cannot run, for code that can; returns the seconds until the next try.

    They grow from half a minute to ten. The claim does not count as lost, and the deadline stands still.
    `metadata["held"]` says why and since when.
    """

    def write() -> float:
        row = locked(owned(claim), str(claim))
        before = row.metadata.get(HELD) or {"since": database_now(database()).isoformat(), "times": 0}
        delay = min(FIRST_HOLD * 2 ** min(before["times"], 10), LONGEST_HOLD)
        held = {**before, "reason": cut(storable(reason), NOTICE_LIMIT), "times": before["times"] + 1}
        update(
            row,
            **FREE,
            next_run_at=Now(delay),
            claim_count=max(row.claim_count - 1, 0),
            metadata={**row.metadata, HELD: held},
            deadline_at=row.deadline_at and row.deadline_at + timedelta(seconds=delay),
        )
        return delay

    return settled(write, lambda: None if _is_claimed(claim) else FIRST_HOLD)


def end_hold(claim: Claim) -> None:
    """Forget that the row was held, now that it runs."""

    def write() -> bool:
        row = locked(owned(claim), str(claim))
        if HELD in row.metadata:
            update(row, metadata={name: value for name, value in row.metadata.items() if name != HELD})
        return True

    settled(write, lambda: None)


def park(claim: Claim, ask: Ask, expires_in: float) -> bool:
    """Give the claim up until a person answers `ask`; it does not count as lost.

    The request expires in `expires_in` seconds. `False`, and nothing is written, if a cancel was asked for.
    """

    def write() -> bool:
        row = locked(owned(claim), str(claim))
        if row.cancel_requested_at is not None:
            return False
        request = requests.open_request(row.pk, claim.iteration, ask, expires_in)
        notice = {"request": str(request.pk), "kind": request.kind, "message": request.message}
        lifecycle_event(row, EventKind.INTERRUPTED, notice)
        update(
            row,
            **FREE,
            status=ExecutionStatus.INTERRUPTED.value,
            claim_count=max(row.claim_count - 1, 0),
        )
        return True

    return settled(write, lambda: None if _is_claimed(claim) else True)


def close_cancelled(execution_id: str | uuid.UUID, *, wait: bool = True) -> bool:
    """End an execution that nobody runs as cancelled, if that was asked for; `False` if not so.

    Without `wait`, a row that another transaction holds is left alone.
    """
    asked = Q(cancel_requested_at__isnull=False)
    return _close_unclaimed(execution_id, asked, ExecutionStatus.CANCELLED, wait)


def close_failed(execution_id: str | uuid.UUID, guard: Q, code: str, summary: str) -> bool:
    """End an execution that nobody runs as failed, if it still meets `guard`; `False` if not so.

    A row that another transaction holds is left alone.
    """
    return _close_unclaimed(execution_id, guard, ExecutionStatus.FAILED, False, code=code, summary=summary)


def make_due(seen: Execution) -> bool:
    """Take the claim that was `seen` from an owner that is gone; the row is due at once.

    The loss stays counted. `False` if the owner has beaten since, the row has moved on, or another
    transaction holds it.
    """
    unchanged = Execution.objects.using(database()).filter(
        pk=seen.pk,
        claim_id=seen.claim_id,
        status=ExecutionStatus.IN_PROGRESS.value,
        lease_until__lt=seen.lease_until + _TICK,
    )
    with transaction.atomic(using=database()):
        if not unchanged.select_for_update(skip_locked=True).values_list("pk").first():
            return False
        return bool(unchanged.update(**FREE, next_run_at=Now(), last_woken_at=None, wake_tries=0))


def _close_unclaimed(
    execution_id: str | uuid.UUID, guard: Q, status: ExecutionStatus, wait: bool, **reason: str
) -> bool:
    nobody = Q(claim_id__isnull=True) | Q(lease_until__lt=Now())
    rows = Execution.objects.using(database()).filter(
        nobody & guard, pk=execution_id, status__in=sources(status)
    )

    def write() -> bool:
        row = rows.select_for_update(skip_locked=not wait).first()
        if row is None:
            return False
        end(row, status, **reason)
        return True

    done = settled(write, lambda: None)
    if done:
        announce(str(execution_id))
    return done


def end(
    row: Execution,
    status: ExecutionStatus,
    *,
    claim: Claim | None = None,
    closed: ClosedAttempt | None = None,
    after: Usage | None = None,
    output: Any = None,
    code: str | None = None,
    summary: str | None = None,
    columns: dict[str, Any] | None = None,
) -> ExecutionStatus:
    """Write the terminal state of a locked row: ledger, columns, the one terminal event, no open request.

    A loop's own event comes before the terminal one.
    """
    if row.status == ExecutionStatus.INTERRUPTED.value:
        requests.close(row.pk, HumanRequestStatus.CANCELLED)
    iteration = row.iteration
    if claim is not None and closed is not None:
        closed.verdict = Verdict.CANCELLED if status == ExecutionStatus.CANCELLED else closed.verdict
        advance(claim, closed, ending=True)
        iteration, usage = closed.n, _total(row, closed.usage)
    else:
        usage = _total(row, open_usage(row) if after is None else after)
    kind, loop = _ENDINGS[status]
    if code == ExecutionFailureCode.LIMIT_REACHED:
        loop = LoopStatus.LIMIT_REACHED
    summary = None if summary is None else cut(storable(summary), SUMMARY_LIMIT)
    notice = {
        "attempts": iteration,
        "failure_code": code,
        "failure_summary": None if summary is None else cut(summary, NOTICE_LIMIT),
    }
    notice = {key: value for key, value in notice.items() if value is not None}
    if row.loop_status is not None:
        lifecycle_event(row, _LOOP_ENDINGS[loop], notice, iteration)
    lifecycle_event(row, kind, notice, iteration)
    update(
        row,
        **FREE,
        **{name: storable(value) for name, value in (columns or {}).items()},
        status=status.value,
        loop_status=loop.value if row.loop_status is not None else None,
        next_run_at=None,
        finished_at=Now(),
        announce_at=Now(ANNOUNCE_SECONDS) if execution_finished.has_listeners(Execution) else None,
        iteration=iteration,
        usage=usage,
        output=storable(output),
        failure_code=code,
        failure_summary=summary,
    )
    return status


def _total(row: Execution, spent: Usage) -> dict[str, Any]:
    return (Usage.model_validate(row.usage) + spent).model_dump(mode="json")


def lifecycle_event(
    row: Execution, kind: EventKind, data: dict[str, Any], iteration: int | None = None
) -> None:
    """Add the next event of a row that the transaction has locked."""
    seq = row.event_seq + 1
    Event.objects.using(database()).create(
        execution=row,
        seq=seq,
        kind=kind.value,
        generation=row.generation,
        iteration=row.iteration if iteration is None else iteration,
        data=data,
    )
    say_written(database(), str(row.pk), seq)


def update(row: Execution, **values: Any) -> None:
    """The guarded write of a locked row: it must still be under the claim and status that were read."""
    same = Execution.objects.using(database()).filter(pk=row.pk, claim_id=row.claim_id, status=row.status)
    if same.update(**values) != 1:
        raise StaleExecution(f"execution {row.pk} has moved on: nothing was written")


def _committed(claim: Claim, n: int) -> bool | None:
    rows = Iteration.objects.using(database()).filter(execution_id=claim.execution_id, n=n)
    return True if rows.filter(claim_id=claim.claim_id).exists() else None


def _ended(claim: Claim) -> ExecutionStatus | None:
    """The terminal status, if this claim was the last one and the row has ended."""
    row = Execution.objects.using(database()).filter(pk=claim.execution_id, fence=claim.fence).first()
    return ExecutionStatus(row.status) if row is not None and row.is_terminal else None


def _is_claimed(claim: Claim) -> bool:
    return owned(claim).exists()


def announce_again(execution_id: str | uuid.UUID) -> bool:
    """Tell listeners of an end that nobody has told them of in time; `False` if that is not (longer) so."""
    late = Execution.objects.using(database()).filter(pk=execution_id, announce_at__lt=Now())
    # Only one sweep of many takes it, and has as long as the first teller had.
    if not late.update(announce_at=Now(ANNOUNCE_SECONDS)):
        return False
    _tell(execution_id)
    return True


def announce(execution_id: str) -> None:
    """Tell listeners of a terminal state after the commit; if this process dies first, the sweep will."""
    if execution_finished.has_listeners(Execution):
        transaction.on_commit(lambda: _tell(execution_id), using=database(), robust=True)


def _tell(execution_id: str | uuid.UUID) -> None:
    """A listener that fails harms nobody; it has been told."""
    rows = Execution.objects.using(database()).filter(pk=execution_id)
    execution = rows.get()
    execution_finished.send_robust(Execution, execution=execution)
    rows.filter(generation=execution.generation).update(announce_at=None)

"""Writes what a loop comes to besides an end: begun, or blocked by a question. Fenced by the claim."""

from typing import Any

from agency.enums import EventKind, ExecutionStatus, LoopStatus
from agency.execution.claims import Claim, database, locked, owned, settled
from agency.execution.conversation import ClosedAttempt
from agency.execution.ledger import NOTICE_LIMIT, advance
from agency.execution.storable import storable
from agency.execution.store import FREE, lifecycle_event, update
from agency.human import requests
from agency.human.asking import Ask
from agency.models import Event, Execution, Iteration


def bootstrap_loop(claim: Claim) -> None:
    """Say once that the loop and its first iteration begin."""

    def write() -> bool:
        row = locked(owned(claim), str(claim))
        if _has(row, EventKind.LOOP_STARTED):
            return True
        begun = {"max_iterations": row.max_iterations}
        lifecycle_event(row, EventKind.LOOP_STARTED, begun, 0)
        lifecycle_event(row, EventKind.ITERATION_STARTED, {}, claim.iteration)
        return True

    settled(write, lambda: None)


def block(claim: Claim, closed: ClosedAttempt, ask: Ask, expires_in: float) -> bool:
    """Commit an iteration and ask a person before the next one.

    `False`, and nothing is written, if a cancel was asked for.
    """

    def write() -> bool:
        row = locked(owned(claim), str(claim))
        if row.cancel_requested_at is not None:
            return False
        committed(row, claim, closed)
        request = requests.open_request(row.pk, closed.n + 1, ask, expires_in)
        notice = {"request": str(request.pk), "kind": request.kind, "message": request.message[:NOTICE_LIMIT]}
        lifecycle_event(row, EventKind.LOOP_BLOCKED, notice)
        lifecycle_event(row, EventKind.INTERRUPTED, notice)
        update(
            row,
            **FREE,
            status=ExecutionStatus.INTERRUPTED.value,
            loop_status=LoopStatus.BLOCKED.value,
            loop_decision=storable(closed.decision),
            claim_count=0,
        )
        return True

    return settled(write, lambda: True if is_committed(claim, closed.n) else None)


def committed(row: Execution, claim: Claim, closed: ClosedAttempt) -> None:
    """Add the iteration to the ledger within the caller's transaction, and bring the locked row up to it."""
    advance(claim, closed, ending=True)
    row.iteration = closed.n


def is_committed(claim: Claim, n: int) -> bool:
    """Whether this claim has put its iteration on record."""
    rows = Iteration.objects.using(database()).filter(execution_id=claim.execution_id, n=n)
    return rows.filter(claim_id=claim.claim_id).exists()


def _has(row: Execution, kind: EventKind) -> bool:
    rows: Any = Event.objects.using(database()).filter(execution=row, kind=kind.value)
    return rows.exists()

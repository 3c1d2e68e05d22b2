"""Answers of people, and requests that nobody answered: decided, and the execution due again, at once.

Each is one transaction that locks the execution first, then its request. The first answer to a call
wins; who comes later gets what is on record.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from agency.agent.events import ToolResult
from agency.agent.text import cut
from agency.enums import (
    EventKind,
    ExecutionStatus,
    HumanDecision,
    HumanRequestKind,
    HumanRequestStatus,
    LoopStatus,
    StepStatus,
)
from agency.errors import StaleExecution
from agency.execution import store
from agency.execution.claims import database, settled
from agency.execution.failure import ExecutionFailureCode
from agency.execution.keys import CallKey
from agency.execution.signals import execution_due
from agency.human import answers, requests
from agency.human.answers import ItemAnswer
from agency.models import Execution, HumanRequest, HumanRequestItem, Step
from agency.models.clock import Now, database_now

NOBODY = "nobody answered in time, so it counts as rejected"
_ALWAYS = "always_allow"


@dataclass(frozen=True, slots=True)
class Answered:
    """What became of an answer; `request` is as it stands now. `refused` says why nothing was written."""

    request: HumanRequest
    refused: str | None = None


def answer(request_id: uuid.UUID, given: Sequence[ItemAnswer], by: Any) -> Answered:
    """Decide on calls of an open request, in the name of the user `by`.

    With the last decision the execution is due again (or ends, if it was given up). `InvalidInput` names
    what does not fit; an answer that comes too late, or to another call than was shown, is refused.
    """
    execution_id = requests.requests().values_list("execution_id", flat=True).get(pk=request_id)

    def write() -> str | None:
        row = _locked(execution_id)
        request = requests.requests().get(pk=request_id)
        items = {item.call_id: item for item in request.items.order_by("position")}
        why = _closed(row, request) or _taken(items, given)
        if why is None:
            answers.check(items, given)
            _decide(row, request, items, given, by)
        return why

    refused = settled(write, lambda: _found(request_id, given, by))
    return Answered(requests.requests().get(pk=request_id), refused or None)


def expire(request_id: uuid.UUID) -> bool:
    """Close a request whose time is over; `False` if it was answered meanwhile or another has its row.

    A call that waited for a confirmation counts as rejected and the run goes on; else the execution fails.
    """

    def write() -> bool:
        request = _open_until(request_id)
        row = None if request is None else _interrupted(request)
        if request is None or row is None or not _close(request, HumanRequestStatus.EXPIRED):
            return False
        seq = row.event_seq + 1
        store.lifecycle_event(row, seq, EventKind.REQUEST_EXPIRED, _notice(request))
        if request.kind == HumanRequestKind.CONFIRM_TOOL.value:
            undecided = request.items.filter(decision__isnull=True)
            undecided.update(decision=HumanDecision.REJECT.value, reason=NOBODY, decided_at=Now())
            _resume(row, request, seq)
            return True
        store.update(row, event_seq=seq)
        row.event_seq = seq
        code, summary = ExecutionFailureCode.REQUEST_EXPIRED, f"Nobody answered in time: {request.message}"
        store.end(row, ExecutionStatus.FAILED, code=code, summary=summary)
        store.announce(str(row.pk))
        return True

    return settled(write, lambda: None)


def warn(request_id: uuid.UUID) -> bool:
    """Tell once that a request is about to expire; `False` if that was told, or it is open no more."""

    def write() -> bool:
        request = requests.requests().filter(pk=request_id, status=requests.OPEN, warned_at=None).first()
        row = None if request is None else _interrupted(request)
        if request is None or row is None:
            return False
        if not requests.requests().filter(pk=request_id, warned_at=None).update(warned_at=Now()):
            return False
        store.lifecycle_event(row, row.event_seq + 1, EventKind.REQUEST_EXPIRING, _notice(request))
        store.update(row, event_seq=row.event_seq + 1)
        return True

    return settled(write, lambda: None)


def _locked(execution_id: uuid.UUID) -> Execution:
    return Execution.objects.using(database()).select_for_update().get(pk=execution_id)


def _interrupted(request: HumanRequest) -> Execution | None:
    """The request's execution, locked, if it waits and nobody else holds it."""
    rows = Execution.objects.using(database()).filter(
        pk=request.execution_id, status=ExecutionStatus.INTERRUPTED.value, cancel_requested_at=None
    )
    return rows.select_for_update(skip_locked=True).first()


def _open_until(request_id: uuid.UUID) -> HumanRequest | None:
    return requests.expired().filter(pk=request_id).first()


def _closed(row: Execution, request: HumanRequest) -> str | None:
    """Why the request takes no answers, or `None`. The database's clock decides on the expiry."""
    if request.status != requests.OPEN:
        return f"The request is {request.status}; this answer came too late."
    if row.status != ExecutionStatus.INTERRUPTED.value or row.cancel_requested_at is not None:
        return "The execution does not wait for an answer any more."
    if requests.expired().filter(pk=request.pk).exists():
        return "The request has expired; this answer came too late."
    return None


def _taken(items: dict[str, HumanRequestItem], given: Sequence[ItemAnswer]) -> str | None:
    for one in given:
        item = items.get(one.call_id)
        if item is not None and item.decision is not None:
            return f"The call {one.call_id} was decided before: {item.decision}."
        if item is not None and item.digest != one.digest:
            return f"The digest is not that of the call {one.call_id}: read the request again."
    return None


def _decide(
    row: Execution,
    request: HumanRequest,
    items: dict[str, HumanRequestItem],
    given: Sequence[ItemAnswer],
    by: Any,
) -> None:
    for one in given:
        _write(items[one.call_id], one, by)
        if request.kind == HumanRequestKind.UNCERTAIN_EFFECT.value:
            _settle_step(row, items[one.call_id], one)
    seq = row.event_seq + 1
    left = request.items.filter(decision__isnull=True).count()
    notice = {
        **_notice(request),
        "decisions": {one.call_id: one.decision.value for one in given},
        "by": by.get_username(),
        "undecided": left,
    }
    store.lifecycle_event(row, seq, EventKind.REQUEST_ANSWERED, notice)
    _always_allow(row, items, given)
    given_up = any(one.decision is HumanDecision.GIVE_UP for one in given)
    if left and not given_up:
        store.update(row, event_seq=seq, metadata=row.metadata)
        return
    if not _close(request, HumanRequestStatus.ANSWERED):
        raise StaleExecution(f"request {request.pk} was closed meanwhile")
    if given_up:
        store.update(row, event_seq=seq)
        row.event_seq = seq
        summary = f"A person gave the execution up. {request.message}"
        store.end(row, ExecutionStatus.FAILED, code=ExecutionFailureCode.RUNTIME_ERROR, summary=summary)
        store.announce(str(row.pk))
    else:
        _resume(row, request, seq)


def _write(item: HumanRequestItem, one: ItemAnswer, by: Any) -> None:
    """The compare-and-set of one decision."""
    undecided = requests.items().filter(pk=item.pk, digest=one.digest, decision__isnull=True)
    written = undecided.update(
        decision=one.decision.value,
        effective=one.effective(item),
        answer=one.value,
        reason=requests.storable(one.reason),
        decided_by=by,
        decided_at=Now(),
    )
    if written != 1:
        raise StaleExecution(f"the call {one.call_id} was decided meanwhile")


def _settle_step(row: Execution, item: HumanRequestItem, one: ItemAnswer) -> None:
    """What a person knows of a cut call enters the journal: its result, or that it is to be made again."""
    intent = Step.objects.using(database()).filter(
        execution=row, key=item.step_key, status=StepStatus.INTENT.value
    )
    key = CallKey.read(item.step_key)
    if one.decision is HumanDecision.RUN_AGAIN:
        done: int = intent.delete()[0]
    elif one.decision is HumanDecision.HAPPENED and key is not None:
        result = ToolResult(
            tool_call_id=key.own(item.call_id), name=item.tool, status="success", content=one.value
        )
        done = intent.update(
            status=StepStatus.DONE.value, done_at=Now(), result=result.model_dump(mode="json")
        )
    else:
        return
    if not done:
        raise StaleExecution(f"the journal holds no open call {item.step_key}")


def _always_allow(row: Execution, items: dict[str, HumanRequestItem], given: Sequence[ItemAnswer]) -> None:
    allowed = {items[one.call_id].tool for one in given if one.always}
    if allowed:
        row.metadata = {**row.metadata, _ALWAYS: sorted({*row.metadata.get(_ALWAYS, []), *allowed})}


def _close(request: HumanRequest, status: HumanRequestStatus) -> bool:
    still_open = requests.requests().filter(pk=request.pk, status=requests.OPEN)
    return bool(still_open.update(status=status.value, closed_at=Now()))


def _resume(row: Execution, request: HumanRequest, seq: int) -> None:
    """Make a waiting row due; its deadline stood still since the request was opened."""
    waited = database_now(database()) - request.created_at
    store.update(
        row,
        status=ExecutionStatus.IN_PROGRESS.value,
        loop_status=None if row.loop_status is None else LoopStatus.RUNNING.value,
        next_run_at=Now(),
        last_woken_at=None,
        wake_tries=0,
        deadline_at=None if row.deadline_at is None else row.deadline_at + max(waited, timedelta()),
        event_seq=seq,
        metadata=row.metadata,
    )
    execution_due.send(Execution, execution_id=str(row.pk), expected_iteration=row.iteration + 1)


def _notice(request: HumanRequest) -> dict[str, Any]:
    return {"request": str(request.pk), "kind": request.kind, "message": cut(request.message, 500)}


def _found(request_id: uuid.UUID, given: Sequence[ItemAnswer], by: Any) -> str | None:
    """After a COMMIT of unknown outcome: an empty text if this answer is on record, `None` if not."""
    for one in given:
        rows = requests.items().filter(request_id=request_id, call_id=one.call_id, decided_by=by)
        if not rows.filter(decision=one.decision.value, digest=one.digest).exists():
            return None
    return ""

"""Requests that nobody answers: a warning, then the end, of the request or of the execution."""

import uuid

from agency.enums import EventKind, ExecutionStatus, HumanDecision, HumanRequestKind, HumanRequestStatus
from agency.execution import resuming, store
from agency.execution.claims import database, settled
from agency.execution.failure import ExecutionFailureCode
from agency.human import requests
from agency.models import Execution, HumanRequest
from agency.models.clock import Now

NOBODY = "nobody answered in time, so it counts as rejected"


def expire(request_id: uuid.UUID) -> bool:
    """Close a request whose time is over; `False` if it was answered meanwhile or another has its row.

    A call that waited for a confirmation counts as rejected and the run goes on; else the execution fails.
    """

    def write() -> bool:
        request = requests.expired().filter(pk=request_id).first()
        row = None if request is None else _interrupted(request)
        if request is None or row is None or not resuming.close(request, HumanRequestStatus.EXPIRED):
            return False
        store.lifecycle_event(row, EventKind.REQUEST_EXPIRED, resuming.notice(request))
        if request.kind == HumanRequestKind.CONFIRM_TOOL.value:
            undecided = request.items.filter(decision__isnull=True)
            undecided.update(decision=HumanDecision.REJECT.value, reason=NOBODY, decided_at=Now())
            resuming.resume(row, request)
            return True
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
        store.lifecycle_event(row, EventKind.REQUEST_EXPIRING, resuming.notice(request))
        return True

    return settled(write, lambda: None)


def _interrupted(request: HumanRequest) -> Execution | None:
    """The request's execution, locked, if it waits and nobody else holds it."""
    rows = Execution.objects.using(database()).filter(
        pk=request.execution_id, status=ExecutionStatus.INTERRUPTED.value, cancel_requested_at=None
    )
    return rows.select_for_update(skip_locked=True).first()

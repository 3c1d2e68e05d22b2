"""How an execution goes on after a person was asked: steps of the transactions that close its request."""

from datetime import timedelta
from typing import Any

from agency.agent.text import as_text, cut
from agency.enums import EventKind, ExecutionStatus, HumanRequestStatus, LoopStatus, Wakeup
from agency.execution import store
from agency.execution.claims import database
from agency.execution.signals import execution_due
from agency.human import requests
from agency.models import Execution, HumanRequest
from agency.models.clock import Now, database_now

OPENING = "opening"
"""Where a mission's `metadata` holds the message with which its next iteration begins."""


def close(request: HumanRequest, status: HumanRequestStatus) -> bool:
    still_open = requests.requests().filter(pk=request.pk, status=requests.OPEN)
    return bool(still_open.update(status=status.value, closed_at=Now()))


def resume(row: Execution, request: HumanRequest, seq: int) -> None:
    """Make a waiting row due; its deadline stood still since the request was opened.

    `seq` is the row's last event. A loop that was blocked begins its next iteration with the answer.
    """
    if row.loop_status == LoopStatus.BLOCKED.value:
        seq += 1
        store.lifecycle_event(row, seq, EventKind.LOOP_RESUMED, {"by": "person", **notice(request)})
        told = {"iteration": row.iteration + 1, "said_by": "person", "message": _told(request)}
        row.metadata = {**row.metadata, OPENING: told}
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
    execution_due.send(
        Execution,
        execution_id=str(row.pk),
        expected_iteration=row.iteration + 1,
        wakeup=Wakeup.RUN_EXECUTION if row.mission_id is None else Wakeup.RESUME_MISSION,
    )


def _told(request: HumanRequest) -> str:
    """What the agent hears of a person's answer."""
    item = request.items.get()
    return f"You needed: {request.message}\nA person answers: {as_text(item.answer)}"


def notice(request: HumanRequest) -> dict[str, Any]:
    return {"request": str(request.pk), "kind": request.kind, "message": cut(request.message, 500)}

"""How an execution goes on after a person was asked: steps of the transactions that close its request."""

from datetime import timedelta
from typing import Any

from agency.agent.text import as_text, cut
from agency.enums import (
    EventKind,
    ExecutionStatus,
    HumanRequestKind,
    HumanRequestStatus,
    LoopStatus,
    Wakeup,
)
from agency.execution import store
from agency.execution.claims import database
from agency.execution.metadata import LOOP_CONFIG, OPENING
from agency.execution.signals import execution_due
from agency.human import requests
from agency.models import Execution, HumanRequest, HumanRequestItem
from agency.models.clock import Now, database_now


def close(request: HumanRequest, status: HumanRequestStatus) -> bool:
    still_open = requests.requests().filter(pk=request.pk, status=requests.OPEN)
    return bool(still_open.update(status=status.value, closed_at=Now()))


def resume(row: Execution, request: HumanRequest) -> None:
    """Make a waiting row due; its deadline stood still since the request was opened.

    A loop that was blocked begins its next iteration with the answer, and an answer about means raises them
    for this execution.
    """
    if row.loop_status == LoopStatus.BLOCKED.value:
        _open_next(row, request)
    elif request.kind == HumanRequestKind.BUDGET.value:
        _raise_limits(row, request.items.get().answer)
    waited = database_now(database()) - request.created_at
    store.update(
        row,
        status=ExecutionStatus.IN_PROGRESS.value,
        loop_status=None if row.loop_status is None else LoopStatus.RUNNING.value,
        next_run_at=Now(),
        last_woken_at=None,
        wake_tries=0,
        deadline_at=None if row.deadline_at is None else row.deadline_at + max(waited, timedelta()),
        max_iterations=row.max_iterations,
        metadata=row.metadata,
    )
    say_due(row)


def say_due(row: Execution) -> None:
    """Say, within the transaction that ends a pause, that the locked row goes on."""
    execution_due.send(
        Execution,
        execution_id=str(row.pk),
        expected_iteration=row.iteration + 1,
        wakeup=Wakeup.RUN_EXECUTION if row.mission_id is None else Wakeup.RESUME_MISSION,
    )


def _open_next(row: Execution, request: HumanRequest) -> None:
    """Have the next iteration begin with the answer, which may grant it where there would be none."""
    item = request.items.get()
    resumed = {"by": "person", **notice(request)}
    granted = (item.effective or {}).get("grant")
    if granted is not None and row.max_iterations is not None:
        row.max_iterations += granted
        resumed |= {"granted": granted, "max_iterations": row.max_iterations}
    store.lifecycle_event(row, EventKind.LOOP_RESUMED, resumed)
    told = {"iteration": row.iteration + 1, "said_by": "person", "message": _told(item)}
    row.metadata = {**row.metadata, OPENING: told}


def _raise_limits(row: Execution, raised: dict[str, Any]) -> None:
    """Change the execution's own copy of the mission's limits."""
    config = row.metadata[LOOP_CONFIG]
    limits = {**config["limits"], **raised}
    row.metadata = {**row.metadata, LOOP_CONFIG: {**config, "limits": limits}}


def _told(item: HumanRequestItem) -> str:
    """What the agent hears of a person's answer."""
    said = {True: "yes", False: "no"}[item.answer] if isinstance(item.answer, bool) else as_text(item.answer)
    return f"You needed: {item.proposed['question']}\nA person answers: {said}"


def notice(request: HumanRequest) -> dict[str, Any]:
    return {"request": str(request.pk), "kind": request.kind, "message": cut(request.message, 500)}

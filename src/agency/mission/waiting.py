"""Writes the waits of missions: begun with the iteration that decides them, looked at, ended.

A waiting row holds nobody: it is due at its end, or at the next look of its watch. Whatever ends a wait
writes the next iteration's opening in the transaction that makes the row due; the first to do so wins.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models.functions import Least

from agency.enums import EventKind, ExecutionStatus, LoopStatus
from agency.execution.claims import Claim, database, locked, owned, settled
from agency.execution.conversation import ClosedAttempt
from agency.execution.metadata import OPENING, WAIT
from agency.execution.resuming import say_due
from agency.execution.storable import storable
from agency.execution.store import FREE, HELD, lifecycle_event, update
from agency.mission import waits
from agency.mission.loop import Wait
from agency.mission.store import committed, is_committed
from agency.mission.waits import Ending
from agency.models import Event, Execution, Iteration, Signal
from agency.models.clock import Now, database_now

_AWAKE = {"last_woken_at": None, "wake_tries": 0}


@dataclass(frozen=True, slots=True)
class Resumed:
    """What became of a wish to end a wait; `refused` says why nothing was changed.

    `execution` is as it is now.
    """

    execution: Execution
    refused: str | None = None


def enter(
    claim: Claim,
    closed: ClosedAttempt,
    wait: Wait,
    *,
    timeout: float = waits.SIGNAL_TIMEOUT,
    interval: float | None = None,
    memory: dict[str, Any] | None = None,
) -> bool:
    """Commit an iteration that has decided to wait, and give the claim up.

    `timeout`, `interval` (seconds between looks) and `memory` are those of a watch. A signal of the name
    that was sent since the iteration before ended is heard at once. `False`, and nothing is written, if a
    cancel was asked for.
    """

    def write() -> bool:
        row = locked(owned(claim), str(claim))
        if row.cancel_requested_at is not None:
            return False
        since = _end_of(row, closed.n - 1)
        committed(row, claim, closed)
        kept = storable(waits.begun(wait, database_now(database()), timeout, memory))
        lifecycle_event(row, EventKind.LOOP_WAITING, waits.told(kept), closed.n)
        columns: dict[str, Any] = {
            "loop_status": LoopStatus.WAITING.value,
            "next_run_at": _next_look(kept, interval),
            "metadata": {**row.metadata, WAIT: kept},
        }
        if (heard := _hear(row, kept, since)) is not None:
            columns = _ended(row, kept, heard)
        update(row, **FREE, **columns, loop_decision=storable(closed.decision), claim_count=0)
        return True

    return settled(write, lambda: True if is_committed(claim, closed.n) else None)


def look_again(claim: Claim, wait: dict[str, Any], interval: float | None, failed: str | None = None) -> bool:
    """Give the claim back until the next look, which it does not count for; `wait` has what this look left.

    A first failure (the type of it) goes on record. `False`, and nothing is written, if a cancel was asked
    for.
    """

    def write() -> bool:
        row = locked(owned(claim), str(claim))
        if row.cancel_requested_at is not None:
            return False
        if failed is not None and wait["failures"] == 1:
            failure = {**waits.told(wait), "failures": 1, "error": failed}
            lifecycle_event(row, EventKind.LOOP_WAITING, failure)
        update(
            row,
            **FREE,
            loop_status=LoopStatus.WAITING.value,
            next_run_at=_next_look(wait, interval),
            claim_count=max(row.claim_count - 1, 0),
            metadata={**_without(row.metadata, HELD), WAIT: storable(wait)},
        )
        return True

    return settled(write, lambda: None if owned(claim).exists() else True)


def end_claimed(claim: Claim, ending: Ending) -> bool:
    """End the wait of a claimed row, whose next iteration this claim then runs.

    A signal that came before the timeout of its wait was noticed wins over it. `False`, and nothing is
    written, if a cancel was asked for.
    """

    def write() -> bool:
        row = locked(owned(claim), str(claim))
        if row.cancel_requested_at is not None:
            return False
        kept = row.metadata[WAIT]
        heard = _hear(row, kept, waits.since_of(kept)) or ending
        values = _ended(row, kept, heard, due=False)
        if row.max_iterations is None or row.iteration < row.max_iterations:
            lifecycle_event(row, EventKind.ITERATION_STARTED, {}, row.iteration + 1)
        update(row, **values, iteration_fence=row.fence)
        return True

    return settled(write, lambda: True if owned(claim).exclude(metadata__has_key=WAIT).exists() else None)


def run_now(execution: Execution, by: Any) -> Resumed:
    """End any wait, also the pause between two iterations, in the name of the user `by`."""

    rows = Execution.objects.using(database()).filter(pk=execution.pk)
    told: list[int] = []

    def write() -> str:
        row = locked(rows, f"execution {execution.pk}")
        why = _why_not(row)
        if why is not None:
            return why
        kept = row.metadata.get(WAIT)
        told.append(row.event_seq + 1)
        if kept is not None:
            end_unclaimed(row, kept, waits.by_person(kept), by)
            return ""
        lifecycle_event(row, EventKind.LOOP_RESUMED, {"by": "run_now", "who": by.get_username()})
        update(row, **_AWAKE, next_run_at=Now())
        say_due(row)
        return ""

    def find() -> str | None:
        events = Event.objects.using(database()).filter(execution_id=execution.pk, seq__in=told)
        ours = events.filter(
            kind=EventKind.LOOP_RESUMED.value, data__by="run_now", data__who=by.get_username()
        )
        return "" if ours.exists() else None

    refused = settled(write, find)
    return Resumed(settled(rows.get, lambda: None, single=True), refused or None)


def is_waiting_for(row: Execution, signal: str) -> bool:
    """Whether a locked row waits for this signal, and nobody is about to end its wait."""
    kept = row.metadata.get(WAIT) or {}
    return kept.get("kind") == "signal" and kept["name"] == signal and row.claim_id is None


def end_unclaimed(row: Execution, kept: dict[str, Any], ending: Ending, by: Any = None) -> None:
    """End the wait of a locked row that nobody runs: it is due at once."""
    update(row, **_ended(row, kept, ending, by))


def _ended(
    row: Execution, kept: dict[str, Any], ending: Ending, by: Any = None, *, due: bool = True
) -> dict[str, Any]:
    """Write the event of a wait's end; the columns that the row gets."""
    data = {**waits.told(kept), "by": ending.by, "who": by and by.get_username(), "failures": ending.failures}
    lifecycle_event(
        row,
        EventKind.LOOP_RESUMED,
        {name: value for name, value in data.items() if value},
        row.iteration,
    )
    opening = {"iteration": row.iteration + 1, "said_by": ending.said_by, "message": storable(ending.message)}
    columns: dict[str, Any] = {
        "metadata": {**_without(row.metadata, WAIT, HELD), OPENING: opening},
    }
    if due:
        columns |= {**_AWAKE, "next_run_at": Now(), "loop_status": LoopStatus.RUNNING.value}
        say_due(row)
    return columns


def _hear(row: Execution, kept: dict[str, Any], since: datetime) -> Ending | None:
    """Take the oldest signal of the awaited name that nobody has heard since then."""
    if kept["kind"] != "signal":
        return None
    rows = Signal.objects.using(database()).filter(
        execution=row, name=kept["name"], consumed_iteration=None, created_at__gte=since
    )
    found = rows.order_by("created_at", "id").first()
    if found is None:
        return None
    consume(found, row)
    return waits.by_signal(kept, found.payload)


def consume(signal: Signal, row: Execution) -> None:
    """Note which iteration hears a signal of the locked `row`."""
    unheard = Signal.objects.using(database()).filter(pk=signal.pk, consumed_iteration=None)
    unheard.update(consumed_iteration=row.iteration + 1)


def _end_of(row: Execution, n: int) -> datetime:
    """When the n-th iteration ended, which is when the next one can first have been told something."""
    rows = Iteration.objects.using(database()).filter(execution=row, n=n)
    return rows.values_list("finished_at", flat=True).first() or row.created_at


def _next_look(kept: dict[str, Any], interval: float | None) -> Any:
    until = waits.until_of(kept)
    return until if kept["kind"] != "watch" or interval is None else Least(Now(interval), until)


def _why_not(row: Execution) -> str | None:
    """Why nothing can be waited for any longer, or `None`."""
    if row.status in {ExecutionStatus.INTERRUPTED.value, ExecutionStatus.PENDING.value} or row.is_terminal:
        return f"The execution is {row.status}; only one that waits can be run now."
    if row.loop_status is None:
        return "The execution is no loop; only one that waits can be run now."
    if row.claim_id is not None:
        return "The execution is being run already."
    is_due = Execution.objects.using(database()).filter(pk=row.pk, next_run_at__lte=Now()).exists()
    return "The execution is due already." if is_due and WAIT not in row.metadata else None


def _without(metadata: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in metadata.items() if name not in names}

"""Lets a mission that has used up its iterations go on for more: the only way out of an end."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from agency.enums import EventKind, ExecutionStatus, LoopStatus
from agency.errors import InvalidInput
from agency.execution.claims import database, locked, settled
from agency.execution.metadata import OPENING
from agency.execution.resuming import say_due
from agency.execution.store import lifecycle_event, update
from agency.mission import openings
from agency.models import Execution, Iteration
from agency.models.clock import Now, database_now

MOST_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Extended:
    """What became of an extension; `refused` says why nothing was changed. `execution` is as it is now."""

    execution: Execution
    refused: str | None = None


def extend(execution: Execution, more: int, by: Any, *, generation: int | None = None) -> Extended:
    """Grant `more` iterations (1 to 100) to an execution that has reached its limit; it is due at once.

    Its limit may pass 100 that way. With the `generation` that the caller has seen, the same wish is never
    granted twice. `InvalidInput` where `more` is out of bounds; any other state refuses.
    """
    if isinstance(more, bool) or not isinstance(more, int) or not 1 <= more <= MOST_AT_ONCE:
        message = f"must be a whole number from 1 to {MOST_AT_ONCE}"
        raise InvalidInput(f"iterations: {message}", [{"path": "iterations", "message": message}])

    rows = Execution.objects.using(database()).filter(pk=execution.pk)

    def write() -> str | None:
        row = locked(rows, f"execution {execution.pk}")
        refused = _refusal(row, generation)
        if refused is None:
            _go_on(row, more, by)
        return refused

    seen = execution.generation if generation is None else generation
    refused = settled(write, lambda: _found(execution, seen))
    return Extended(settled(rows.get, lambda: None, single=True), refused or None)


def _refusal(row: Execution, generation: int | None) -> str | None:
    if generation is not None and row.generation != generation:
        return f"The execution was extended before; it is in its generation {row.generation}."
    if row.loop_status != LoopStatus.LIMIT_REACHED.value:
        where = row.loop_status or row.status
        return f"The execution is {where}; only one that has reached its limit can be extended."
    return None


def _go_on(row: Execution, more: int, by: Any) -> None:
    """Open the next generation of a locked row that has ended."""
    assert row.finished_at is not None
    assert row.max_iterations is not None
    lay = max(database_now(database()) - row.finished_at, timedelta())
    limit = row.max_iterations + more
    row.generation += 1
    data = {"by": "extension", "who": by and by.get_username(), "iterations": more, "max_iterations": limit}
    lifecycle_event(row, EventKind.LOOP_RESUMED, data)
    update(
        row,
        generation=row.generation,
        max_iterations=limit,
        status=ExecutionStatus.IN_PROGRESS.value,
        loop_status=LoopStatus.RUNNING.value,
        next_run_at=Now(),
        last_woken_at=None,
        wake_tries=0,
        claim_count=0,
        iteration_fence=None,
        cancel_requested_at=None,
        deadline_at=None if row.deadline_at is None else row.deadline_at + lay,
        failure_code=None,
        failure_summary=None,
        finished_at=None,
        announce_at=None,
        metadata={**row.metadata, **_opening(row, more)},
    )
    say_due(row)


def _opening(row: Execution, more: int) -> dict[str, Any]:
    """What the next iteration is told where neither a wait's end nor the supervisor has said it."""
    kept: dict[str, Any] = row.metadata.get(OPENING) or {}
    if kept.get("iteration") == row.iteration + 1:
        return {}
    rows = Iteration.objects.using(database()).filter(execution=row, n=row.iteration)
    if rows.exclude(feedback=None).exists():
        return {}
    told = {
        "iteration": row.iteration + 1,
        "said_by": "extension",
        "message": openings.extended(more),
    }
    return {OPENING: told}


def _found(execution: Execution, generation: int) -> str | None:
    """After a COMMIT of unknown outcome: an empty text if the next generation has begun."""
    rows = Execution.objects.using(database()).filter(pk=execution.pk, generation__gt=generation)
    return "" if rows.exists() else None

"""Begins the wait of a claimed mission, and looks whether it is over or given back until the next look."""

from collections.abc import Callable
from typing import Any

from agency.errors import RunCancelled
from agency.execution.claims import Claim, database
from agency.execution.conversation import ClosedAttempt
from agency.execution.metadata import WAIT
from agency.mission import waiting, waits
from agency.mission.loop import Wait
from agency.mission.waits import Ending
from agency.mission.watches import limited, registry
from agency.mission.watches.declared import View
from agency.models import Execution
from agency.models.clock import database_now

Stopped = Callable[[], bool]


def begin(claim: Claim, closed: ClosedAttempt, wait: Wait, is_stopped: Stopped) -> None:
    """Commit an iteration that has decided to wait; the claim is given up. `RunCancelled` if it must stop.

    A watch notes first what is there already. One that fails at this is asked again at the first look.
    """
    if wait.watch is None:
        _written(waiting.enter(claim, closed, wait))
        return
    watch = registry.get_watch(wait.watch)
    view = View(claim.execution_id, closed.n, wait.what_for, database_now(database()))
    seen = limited.first_memory(watch, view, is_stopped)
    _written(
        waiting.enter(claim, closed, wait, timeout=watch.TIMEOUT, interval=watch.INTERVAL, memory=seen.memory)
    )


def look(claim: Claim, is_stopped: Stopped) -> bool:
    """Whether the wait of a claimed row is over, so that this claim runs the next iteration.

    If not, the claim was given back until the next look. `RunCancelled` if it must stop.
    """
    row = Execution.objects.using(database()).get(pk=claim.execution_id)
    kept: dict[str, Any] = row.metadata[WAIT]
    if database_now(database()) >= waits.until_of(kept):
        return _over(claim, waits.by_time(kept))
    if kept["kind"] != "watch":
        return _again(claim, kept)
    watch = registry.get_watch(kept["name"])
    view = View(claim.execution_id, row.iteration, kept["what_for"], waits.since_of(kept))
    seen = limited.look(watch, view, kept["memory"], is_stopped)
    if seen.failure is not None:
        failures = kept["failures"] + 1
        if failures >= waits.FAILURES:
            return _over(claim, waits.by_failure(kept, seen.failure))
        return _again(claim, {**kept, "failures": failures}, watch.INTERVAL, seen.failure)
    if seen.is_over:
        return _over(claim, waits.by_watch(kept, seen.payload))
    memory = kept["memory"] if seen.memory is None else seen.memory
    return _again(claim, {**kept, "failures": 0, "memory": memory}, watch.INTERVAL)


def _over(claim: Claim, ending: Ending) -> bool:
    _written(waiting.end_claimed(claim, ending))
    return True


def _again(
    claim: Claim, kept: dict[str, Any], interval: float | None = None, failed: str | None = None
) -> bool:
    _written(waiting.look_again(claim, kept, interval, failed))
    return False


def _written(was: bool) -> None:
    if not was:
        raise RunCancelled("a cancel was asked for")

"""What a mission waits for, as it stands in its row, and what the supervisor may wait for. Decides only."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from pydantic import model_validator

from agency.mission import openings
from agency.mission.loop import LONGEST_WAIT, LoopDecision, Wait

SIGNAL_TIMEOUT = 7 * 86_400.0
SHORTEST = timedelta(seconds=1)
FAILURES = 5
"""So many failed looks in a row end a wait."""
FORMS_KEPT = 16


@dataclass(frozen=True, slots=True)
class Ending:
    """What ended a wait: `by` for the event, `said_by` and `message` for the next iteration's opening."""

    by: str
    said_by: str
    message: str
    failures: int = 0


def begun(wait: Wait, now: datetime, timeout: float, memory: dict[str, Any] | None) -> dict[str, Any]:
    """The wait as the row keeps it; `timeout` (seconds) is that of a signal or watch, `memory` a watch's."""
    kind = next(name for name in ("seconds", "until", "signal", "watch") if getattr(wait, name) is not None)
    if kind == "until":
        assert wait.until is not None
        latest = now + timedelta(seconds=LONGEST_WAIT)
        until = min(max(wait.until, now + SHORTEST), latest)
    else:
        until = now + timedelta(seconds=wait.seconds or timeout)
    return {
        "kind": kind,
        "name": wait.signal or wait.watch,
        "what_for": wait.what_for,
        "until": until.isoformat(),
        "since": now.isoformat(),
        "memory": memory,
        "failures": 0,
    }


def until_of(wait: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(wait["until"])


def since_of(wait: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(wait["since"])


def told(wait: dict[str, Any]) -> dict[str, Any]:
    """What events say of a wait."""
    return {name: wait[name] for name in ("kind", "name", "what_for", "until")}


def by_time(wait: dict[str, Any]) -> Ending:
    """Its time is over: that is what was waited for, or its timeout."""
    if wait["kind"] in {"signal", "watch"}:
        return Ending("timeout", "time", openings.timed_out(wait))
    return Ending("time", "time", openings.time_passed(wait))


def by_signal(wait: dict[str, Any], payload: Any) -> Ending:
    return Ending("signal", "signal", openings.signal_came(wait, payload))


def by_watch(wait: dict[str, Any], payload: Any) -> Ending:
    return Ending("watch", "watch", openings.watch_met(wait, payload))


def by_failure(wait: dict[str, Any], kind: str) -> Ending:
    message = openings.watch_failed(wait, FAILURES, kind)
    return Ending("watch_failed", "watch", message, FAILURES)


def by_person(wait: dict[str, Any]) -> Ending:
    return Ending("run_now", "run_now", openings.run_now(wait))


def knowing(form: type[LoopDecision], watches: Collection[str]) -> type[LoopDecision]:
    """`form` for a project that has these watches: a decision that waits for another one is not valid.

    So an invented watch is sent back to the supervisor as every other fault of its answer is.
    """
    return _knowing(form, tuple(sorted(watches)))


@lru_cache(FORMS_KEPT)
def _knowing(form: type[LoopDecision], watches: tuple[str, ...]) -> type[LoopDecision]:
    """To make a form and its schema takes longer than all else of an iteration whose models are fast."""

    class Knowing(form):
        @model_validator(mode="after")
        def _knows_watch(self) -> "Knowing":
            named = self.wait and self.wait.watch
            if named is not None and named not in watches:
                known = ", ".join(watches) or "none: wait for seconds, until a time or for a signal"
                raise ValueError(f"wait.watch {named!r} is no watch; there are: {known}")
            return self

    # What the model is told of the form stays the same.
    Knowing.__name__, Knowing.__doc__ = form.__name__, form.__doc__
    return Knowing

"""When a provider is asked and when it is left alone: pure rules over what its gate remembers.

Failures in a row shut the gate for a growing while, then one call at a time tries it. A rate limit shuts
it for as long as the provider asks, and teaches a pace: the pause between calls that keeps below the limit.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

FAILURES_TO_SHUT = 5
FIRST_SHUT, LONGEST_SHUT = 2.0, 300.0
LONGEST_ASKED = 3600.0
"""Seconds that a provider's `Retry-After` is believed at most."""
PROBE_SECONDS = 30.0
"""How long the one call that tries a shut gate keeps the others out, if it is never heard of again."""
PATIENCE = 1.0
"""A call whose place in the pace is at most this far away waits for it; any other run is put back."""
FIRST_INTERVAL, LONGEST_INTERVAL, NO_INTERVAL = 0.25, 30.0, 0.005
SLOWER = 1.5
FASTER, FASTER_NEAR_THE_LIMIT, NEAR = 0.98, 0.998, 1.6
FORGET_SECONDS = 600.0
"""After so long without a call, a pace says nothing any more."""


@dataclass(frozen=True, slots=True)
class Gate:
    """As `ProviderGate`, whose columns these are."""

    failures: int = 0
    not_before: datetime | None = None
    interval: float = 0.0
    ceiling: float = 0.0
    next_call_at: datetime | None = None

    def is_shut(self, now: datetime) -> bool:
        return self.not_before is not None and self.not_before > now

    @property
    def is_failing(self) -> bool:
        return self.failures >= FAILURES_TO_SHUT


@dataclass(frozen=True, slots=True)
class Admitted:
    """The call may begin in `wait` seconds. `is_probe`: it tries a provider that has failed."""

    gate: Gate
    wait: float
    is_probe: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """No call now; it makes sense to ask again in `seconds`."""

    seconds: float


def admit(gate: Gate, now: datetime) -> Admitted | Refused:
    """Whether a call may begin, and what the gate remembers then."""
    if gate.not_before is not None and gate.is_shut(now):
        return Refused((gate.not_before - now).total_seconds())
    begin = max(now, gate.next_call_at or now)
    wait = (begin - now).total_seconds()
    if wait > PATIENCE:
        return Refused(wait)
    after = replace(
        gate,
        not_before=_after(now, PROBE_SECONDS) if gate.is_failing else None,
        next_call_at=_after(begin, gate.interval) if gate.interval else None,
    )
    return Admitted(after, wait, gate.is_failing)


def failed(
    gate: Gate, now: datetime, *, retry_after: float | None, is_limit: bool, is_probe: bool, jitter: float
) -> Gate:
    """What a failed call teaches; `jitter` is between 0 and 1.

    A call that was under way when the gate was shut teaches nothing but to wait longer.
    """
    asked = 0.0 if retry_after is None else min(max(retry_after, 0.0), LONGEST_ASKED)
    if gate.is_shut(now) and not is_probe:
        return replace(gate, not_before=max(gate.not_before or now, _after(now, asked)))
    after = replace(gate, failures=gate.failures + 1)
    shut = asked + jitter * min(asked, 1.0)
    if is_limit:
        shut = shut or 0.5 + jitter
        slower = min(gate.interval * SLOWER, LONGEST_INTERVAL) or FIRST_INTERVAL
        after = replace(after, interval=slower, ceiling=gate.interval)
    if after.is_failing:
        longest = min(LONGEST_SHUT, FIRST_SHUT * 2.0 ** min(after.failures - FAILURES_TO_SHUT, 20))
        shut = max(shut, longest * (0.5 + jitter / 2))
    return replace(after, not_before=_after(now, shut) if shut else None)


def answered(gate: Gate, now: datetime, *, is_probe: bool) -> Gate | None:
    """What an answer teaches; `None` when there is nothing left to remember."""
    interval = gate.interval * (FASTER_NEAR_THE_LIMIT if gate.interval < NEAR * gate.ceiling else FASTER)
    if interval < NO_INTERVAL:
        interval = 0.0
    still_shut = gate.is_shut(now) and not is_probe
    if not interval and not still_shut:
        return None
    return replace(gate, failures=0, not_before=gate.not_before if still_shut else None, interval=interval)


def is_outdated(gate: Gate, now: datetime) -> bool:
    """Whether the last call is so long ago that the gate says nothing about the provider any more."""
    last = max((moment for moment in (gate.not_before, gate.next_call_at) if moment), default=None)
    return last is not None and (now - last).total_seconds() > FORGET_SECONDS


def _after(moment: datetime, seconds: float) -> datetime:
    return moment + timedelta(seconds=seconds)

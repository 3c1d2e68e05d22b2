"""What strikes a run, and when: a schedule drawn from the seed, spread over the progress of the work.

Strikes come at points of progress and not of time, so that they hit work on a fast machine and on a
slow one. Each is written down with its moment, its process and what that process held.
"""

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

FIRST, LAST = 0.02, 0.94


@dataclass(slots=True)
class Strike:
    progress: float
    fault: str


def schedule(faults: dict[str, int], seed: int) -> list[Strike]:
    """Every fault as often as asked, in an order and at points that the seed decides."""
    chance = random.Random(f"schedule/{seed}")
    kinds = [fault for fault, times in sorted(faults.items()) for _ in range(times)]
    chance.shuffle(kinds)
    width = (LAST - FIRST) / max(1, len(kinds))
    return [Strike(FIRST + width * (n + chance.random()), kind) for n, kind in enumerate(kinds)]


class Record:
    """The nemesis's log: a line of JSON for each strike, and what it leaves to be done later."""

    def __init__(self, log: Path) -> None:
        self._log = log.open("a", buffering=1)
        self._later: list[tuple[float, Callable[[], None]]] = []

    @property
    def at_rest(self) -> bool:
        """Whether nothing that was done is still to be undone."""
        return not self._later

    def note(self, fault: str, at: float | None = None, **what: Any) -> None:
        """`at` is a wall-clock time, by default now; `times` counts for more than one."""
        self._log.write(json.dumps({"at": at or time.time(), "fault": fault, **what}) + "\n")

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        self._later.append((time.monotonic() + seconds, do))

    def turn(self) -> None:
        """Do what is due by now."""
        now = time.monotonic()
        due = [one for one in self._later if one[0] <= now]
        self._later = [one for one in self._later if one[0] > now]
        for _, do in due:
            do()


class Striker(Protocol):
    def strike(self, fault: str) -> bool:
        """Whether there was something to hit."""
        ...


class Nemesis:
    """Takes its turns in the run's loop. A strike that finds nothing to hit waits for its next turn."""

    def __init__(self, striker: Striker, record: Record, strikes: list[Strike], gap: float) -> None:
        self._striker, self._record, self._left, self._gap = striker, record, strikes, gap
        self._next_at = 0.0

    @property
    def at_rest(self) -> bool:
        return self._record.at_rest

    def turn(self, progress: float) -> None:
        self._record.turn()
        now = time.monotonic()
        due = bool(self._left) and progress >= self._left[0].progress and now >= self._next_at
        if due and self._striker.strike(self._left[0].fault):
            del self._left[0]
            self._next_at = time.monotonic() + self._gap

    def behind(self, progress: float) -> bool:
        """Whether the work should wait, since strikes that were due have found nothing to hit."""
        return bool(self._left) and progress > self._left[0].progress + 0.01

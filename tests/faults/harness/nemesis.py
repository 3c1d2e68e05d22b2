"""What strikes a run: a schedule drawn from the seed, spread over the progress of the work, and its log.

Strikes come at points of progress and not of time, so that they hit work on a fast machine and on a
slow one. Each is written down with its moment, its process and what that process held.
"""

import json
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.harness.backends import Backend
from tests.faults.harness.fleet import Fleet, Member

Held = Callable[[], dict[int, list[tuple[str, int]]]]
"""The claims of each process: execution ids and fences by pid."""
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


class Nemesis:
    """Takes its turns in the run's loop. A strike that finds nothing to hit waits for its next turn."""

    def __init__(
        self,
        fleet: Fleet,
        backend: Backend,
        held: Held,
        log: Path,
        *,
        faults: dict[str, int],
        seed: int,
        gap: float,
        lease: float,
        spare: int,
    ) -> None:
        self._fleet, self._backend, self._held = fleet, backend, held
        self._log = log.open("a", buffering=1)
        self._left = schedule(faults, seed)
        self._chance = random.Random(f"victims/{seed}")
        self._gap, self._lease, self._spare = gap, lease, spare
        self._next_at = 0.0
        self._later: list[tuple[float, Callable[[], None]]] = []
        self._strikes: dict[str, Callable[[], bool]] = {
            "kill_worker": self._kill_worker,
            "kill_dispatcher": self._kill_dispatcher,
        }

    @property
    def at_rest(self) -> bool:
        """Whether nothing that it did is still to be undone."""
        return not self._later

    def turn(self, progress: float) -> None:
        now = time.monotonic()
        for one in [one for one in self._later if one[0] <= now]:
            self._later.remove(one)
            one[1]()
        due = bool(self._left) and progress >= self._left[0].progress and now >= self._next_at
        if due and self._strikes[self._left[0].fault]():
            del self._left[0]
            self._next_at = time.monotonic() + self._gap

    def behind(self, progress: float) -> bool:
        """Whether the work should wait, since strikes that were due have found nothing to hit."""
        return bool(self._left) and progress > self._left[0].progress + 0.01

    def note(self, fault: str, **what: Any) -> None:
        self._log.write(json.dumps({"at": time.time(), "fault": fault, **what}) + "\n")

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        self._later.append((time.monotonic() + seconds, do))

    def _kill_worker(self) -> bool:
        victim = self._busy_worker()
        return victim is not None and self._kill(victim)

    def _kill_dispatcher(self) -> bool:
        ready = self._fleet.ready("dispatcher")
        return bool(ready) and self._kill(self._chance.choice(ready))

    def _kill(self, victim: Member) -> bool:
        at = time.time()
        victim.signal(signal.SIGKILL)
        victim.process.wait()
        self.note(f"kill_{victim.role}", at=at, pid=victim.pid, held=self._held().get(victim.pid, []))
        return True

    def _busy_worker(self) -> Member | None:
        """A worker that holds claims, so that the strike hits work; enough others must be left to take it."""
        ready, holding = self._fleet.ready("worker"), self._held()
        busy = [one for one in ready if one.pid in holding]
        return self._chance.choice(busy) if busy and len(ready) > self._spare else None

"""The script that every subject's model plays, and the clock that it stamps. Standard library only."""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

INSTRUCTIONS = "You add numbers with the tool."
TASK = "Add the numbers one by one, then say that you are done."
ANSWER = "All numbers are added."


@dataclass(slots=True)
class Patience:
    """How long the models of this process play along; then they answer early, and `cut` says that one did."""

    until: float = math.inf
    cut: bool = False

    def allow(self, seconds: float) -> None:
        self.until, self.cut = time.perf_counter() + seconds, False

    @property
    def is_over(self) -> bool:
        return time.perf_counter() > self.until


patience = Patience()


@dataclass(slots=True)
class Script:
    """Where one run's model stands: `next()` is the number of the call to make, `None` for the answer."""

    steps: int
    delay: float = 0.0
    stamps: list[float] = field(default_factory=list)

    def next(self) -> int | None:
        number = len(self.stamps)
        self.stamps.append(time.process_time())
        if number < self.steps and patience.is_over:
            patience.cut = True
            return None
        return number if number < self.steps else None


def check(output: object) -> None:
    """A benchmark of runs that did not end is worth nothing."""
    if output != ANSWER:
        raise SystemExit(f"the run ended with {output!r}")


def on_threads(run: Callable[[], None], count: int) -> None:
    """`count` runs at once, each on a thread of its own."""
    failures: list[BaseException] = []

    def body() -> None:
        try:
            run()
        except BaseException as exc:
            failures.append(exc)

    threads = [threading.Thread(target=body) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]

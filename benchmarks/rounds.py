"""Interleaved rounds: each case is measured on every subject in turn, so that a busy moment hits them all."""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections import defaultdict, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parent.parent
LINES_KEPT = 20
"""Of what a subject prints: enough to say why it has ended."""
PATIENCE = 12.0
"""Seconds after which a subject's case is not measured again."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a worker is told to measure."""

    name: str
    order: dict[str, Any]


class Worker:
    """A subject in a process of its own, which waits for orders."""

    def __init__(self, name: str, python: Path, module: str = "benchmarks.worker", *arguments: str) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [str(python), "-m", module, name.replace("-", "_"), *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        # Some print all that they are told: a pipe that nobody reads would be full, and they would wait.
        self._said: deque[str] = deque(maxlen=LINES_KEPT)
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def hello(self) -> str | None:
        """The version of what is measured; `None` if the subject does not run."""
        said = self._read()
        return None if said is None else said["version"]

    def ask(self, order: dict[str, Any]) -> dict[str, float] | None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return self._read()

    def fault(self) -> str:
        """The last thing that a subject which ended said."""
        self._end()
        said = [line.strip() for line in self._said if line.strip()]
        return said[-1] if said else f"exit code {self._process.returncode}"

    def _listen(self) -> None:
        assert self._process.stderr is not None
        self._said.extend(self._process.stderr)

    def _end(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        self._reader.join()

    def _read(self) -> dict[str, Any] | None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else None


class AtLeast(float):
    """A figure of a run that was cut off after `steps`: the whole run would have given no less."""

    steps: int = 0

    @classmethod
    def like(cls, value: float, other: float) -> float:
        """`value`, which is at least that if `other`, from which it comes, is."""
        if not isinstance(other, AtLeast):
            return value
        least = cls(value)
        least.steps = other.steps
        return least


@dataclass(slots=True)
class Figures:
    """The medians of all rounds: `of("agno", "steps 10", "step")`; `AtLeast` where runs were cut off."""

    samples: dict[tuple[str, str, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, subject: str, case: str, measured: dict[str, float]) -> None:
        for what, value in measured.items():
            self.samples[subject, case, what].append(value)

    def of(self, subject: str, case: str, what: str) -> float | None:
        found = self.samples.get((subject, case, what))
        if not found:
            return None
        value, cut = statistics.median(found), self.samples.get((subject, case, "cut"))
        if not cut or what == "first":
            return value
        least = AtLeast(value)
        least.steps = int(min(cut))
        return least


def measure(workers: list[Worker], cases: list[Case], rounds: int) -> Figures:
    """Every case `rounds` times on every worker; one that fails is left out from then on."""
    figures = Figures()
    running = list(workers)
    for case in cases:
        spent: dict[str, float] = defaultdict(float)
        for number in range(rounds):
            if sys.stdout.isatty():
                print(f"\r{case.name}: round {number + 1} of {rounds}   ", end="", flush=True)
            for worker in list(running):
                if spent[worker.name] > PATIENCE:
                    continue
                started = time.perf_counter()
                measured = worker.ask(case.order)
                spent[worker.name] += time.perf_counter() - started
                if measured is None:
                    running.remove(worker)
                    print(f"\n{worker.name} broke off: {worker.fault()}")
                else:
                    figures.add(worker.name, case.name, measured)
    print()
    return figures

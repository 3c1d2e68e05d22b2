"""Runs one subject in a process and environment of its own: a line of JSON in, a line of JSON out.

Standard library only, since it runs in the peers' environments.
"""

import contextlib
import gc
import importlib
import importlib.metadata
import itertools
import json
import math
import statistics
import sys
import time
from typing import Any

from benchmarks.script import patience

EDGE = 10
SOME = 300


def main(name: str) -> None:
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        subject = importlib.import_module(f"benchmarks.subjects.{name}")
        subject.steps(EDGE)
        subject.crowd(2, 2, 0.001)
        installed = subject.INSTALLED
        version = importlib.metadata.version(installed) if installed else ""
        _say(out, {"version": version})
        for line in sys.stdin:
            order: dict[str, Any] = json.loads(line)
            measure = {"steps": steps, "crowd": crowd}[order.pop("case")]
            patience.allow(order.pop("seconds", math.inf))
            _say(out, measure(subject, **order))


def steps(subject: Any, count: int) -> dict[str, float]:
    """CPU microseconds a step: over whole runs, and the median of their first and last ten steps.

    Short runs are repeated, so that each figure is of some hundred steps. `cut` is how many were done in the
    time that was allowed, if that was not enough.
    """
    runs = max(1, SOME // count)
    stamps: list[list[float]] = []
    gc.collect()
    started = time.process_time()
    while len(stamps) < runs and not patience.is_over:
        stamps.append(subject.steps(count))
    spent = time.process_time() - started
    done = sum(len(run) - 1 for run in stamps)
    took = [[after - before for before, after in itertools.pairwise(run)] for run in stamps]
    first = statistics.median(step for run in took for step in run[:EDGE])
    last = statistics.median(step for run in took for step in run[-EDGE:])
    figures = {"step": spent / done * 1e6, "first": first * 1e6, "last": last * 1e6}
    return {**figures, "cut": len(stamps[-1]) - 1} if patience.cut else figures


def crowd(subject: Any, runs: int, count: int, delay: float) -> dict[str, float]:
    """Wall seconds for all runs, CPU milliseconds for each."""
    gc.collect()
    started, cpu = time.perf_counter(), time.process_time()
    subject.crowd(runs, count, delay)
    wall, spent = time.perf_counter() - started, time.process_time() - cpu
    figures = {"wall": wall, "cpu": spent / runs * 1e3}
    return {**figures, "cut": 0} if patience.cut else figures


def _say(out: Any, value: dict[str, Any]) -> None:
    out.write(json.dumps(value) + "\n")
    out.flush()


if __name__ == "__main__":
    main(sys.argv[1])

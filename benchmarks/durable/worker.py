"""Runs one durable subject in a process and environment of its own: a line of JSON in, one out.

Standard library only, since it runs in the peers' environments.
"""

import contextlib
import importlib
import importlib.metadata
import itertools
import json
import statistics
import sys
import time
from typing import Any

EDGE = 10
SOME = 100


def main(name: str, url: str) -> None:
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        module = importlib.import_module(f"benchmarks.durable.subjects.{name}")
        subject = module.Subject(url)
        subject.steps(EDGE)
        version = importlib.metadata.version(module.INSTALLED) if module.INSTALLED else ""
        _say(out, {"version": version})
        for line in sys.stdin:
            _say(out, steps(subject, **json.loads(line)))


def steps(subject: Any, count: int) -> dict[str, float]:
    """Milliseconds a step: the median of all, of the first and of the last ten; bytes stored a step.

    Short runs are repeated, so that each figure is of a hundred steps at least.
    """
    runs = max(1, SOME // count)
    before, cpu = subject.stored(), time.process_time()
    stamps = [subject.steps(count) for _ in range(runs)]
    spent = time.process_time() - cpu
    took = [[(after - ahead) * 1e3 for ahead, after in itertools.pairwise(run)] for run in stamps]
    return {
        "step": statistics.median(step for run in took for step in run),
        "first": statistics.median(step for run in took for step in run[:EDGE]),
        "last": statistics.median(step for run in took for step in run[-EDGE:]),
        "cpu": spent / count / runs * 1e3,
        "stored": (subject.stored() - before) / count / runs,
    }


def _say(out: Any, value: dict[str, Any]) -> None:
    out.write(json.dumps(value) + "\n")
    out.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

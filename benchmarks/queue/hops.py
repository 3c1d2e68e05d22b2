"""Chains of hops, and the same chains as no-op Celery tasks, turn by turn in the same worker."""

import itertools
from collections import defaultdict
from pathlib import Path

from django.db import transaction

from agency.enums import Wakeup
from agency.execution.signals import execution_due
from agency.models import Execution
from benchmarks.queue import CHAINS, HOPS, processes, rows

PATIENCE = 120.0
Line = tuple[str, int, float, float]


def measure(home: Path, log: processes.Log) -> dict[str, float]:
    """Milliseconds from commit to next start, ours and Celery's alone; and our throughput by Celery's."""
    with processes.worker(home / "worker.log"):
        _chains(log, 2)
        _noops(log, 2)
        lone, lone_noop = _chains(log, 1), _noops(log, 1)
        pairs = [(_per_second(_chains(log, CHAINS)), _per_second(_noops(log, CHAINS))) for _ in range(3)]
        _missions(log, 2)
        one_mission = _missions(log, 1)
        whole = [(_per_second(_missions(log, CHAINS)), _per_second(_noops(log, CHAINS))) for _ in range(3)]
    ours, theirs = (sorted(values)[1] for values in zip(*pairs, strict=True))
    gaps, noop_gaps, iterations = _gaps(lone), _gaps(lone_noop), _gaps(one_mission)
    return {
        "hop p50": percentile(gaps, 50) * 1e3,
        "hop p95": percentile(gaps, 95) * 1e3,
        "noop p50": percentile(noop_gaps, 50) * 1e3,
        "noop p95": percentile(noop_gaps, 95) * 1e3,
        "hops": ours,
        "noops": theirs,
        "ratio": sorted(one / other for one, other in pairs)[1],
        "mission p50": percentile(iterations, 50) * 1e3,
        "mission p95": percentile(iterations, 95) * 1e3,
        "missions": sorted(one for one, _ in whole)[1],
        "mission ratio": sorted(one / other for one, other in whole)[1],
    }


def percentile(values: list[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def _chains(log: processes.Log, count: int) -> list[Line]:
    """`count` missions of `HOPS` iterations at once, a few owners, each hop woken by the one before."""
    before = len(log.lines("hop"))
    with transaction.atomic():
        for number in range(count):
            made = rows.one(rows.agent(f"owner-{number % 4}"))
            execution_due.send(
                Execution, execution_id=str(made.pk), expected_iteration=1, wakeup=Wakeup.RUN_EXECUTION
            )
    return log.await_lines("hop", before + count * HOPS, PATIENCE)[before:]


def _missions(log: processes.Log, count: int) -> list[Line]:
    """`count` missions of `HOPS` iterations at once, each with turn, decision and commit."""
    before = len(log.lines("mission"))
    with transaction.atomic():
        for number in range(count):
            rows.mission(rows.agent(f"owner-{number % 4}"), HOPS).dispatch()
    return log.await_lines("mission", before + count * HOPS, PATIENCE)[before:]


def _noops(log: processes.Log, count: int) -> list[Line]:
    from benchmarks.queue.celery import NOOP, app

    before = len(log.lines("noop"))
    for number in range(count):
        app.send_task(NOOP, (f"{before}-{number}", 1), ignore_result=True)
    return log.await_lines("noop", before + count * HOPS, PATIENCE)[before:]


def _per_second(lines: list[Line]) -> float:
    return len(lines) / (max(over for *_, over in lines) - min(began for _, _, began, _ in lines))


def _gaps(lines: list[Line]) -> list[float]:
    """Seconds between the end of a hop and the beginning of the next one of the same chain."""
    chains: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        chains[line[0]].append(line)
    ordered = (sorted(chain, key=lambda line: line[1]) for chain in chains.values())
    return [later[2] - earlier[3] for chain in ordered for earlier, later in itertools.pairwise(chain)]

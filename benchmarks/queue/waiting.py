"""100,000 rows that wait: what claims, dispatcher and worker cost beside them, and how late runs start."""

import time
from pathlib import Path

from django.db import connection, transaction

from agency.models import Execution
from agency.models.clock import Now
from agency.runtime.claim import claim
from benchmarks.queue import HOPS, processes, rows
from benchmarks.queue.hops import percentile

WAITING = 100_000
BATCH = 5_000
ARRIVALS, SECONDS = 200, 20
OWNERS = 50


def measure(home: Path, log: processes.Log) -> dict[str, float]:
    like = rows.one(rows.agent("owner-0"))
    for number in range(OWNERS):
        whose = rows.agent(f"owner-{number}")
        Execution.objects.filter(pk=like.pk).update(owner=whose.owner, agent=whose)
        rows.many(like, WAITING // OWNERS, "clock_timestamp() + interval '1 hour' * (1 + 23 * random())")
    Execution.objects.filter(pk=like.pk).update(next_run_at=Now(86_400))
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {rows.EXECUTION}")
    idle = _claims(200)
    served = _served(home, log)
    rows.many(like, BATCH, "clock_timestamp()")
    busy = _claims(300)
    return {"idle claim p95": idle, "batch claim p95": busy, **served}


def _claims(count: int) -> float:
    """Milliseconds that 95 in a hundred claims take at most."""
    took: list[float] = []
    for _ in range(count):
        began = time.perf_counter()
        claim()
        took.append(time.perf_counter() - began)
    return percentile(took, 95) * 1e3


def _served(home: Path, log: processes.Log) -> dict[str, float]:
    """While some of the rows become due, second by second."""
    with (
        processes.worker(home / "late.log") as worker,
        processes.dispatcher(home / "dispatcher.log") as dispatcher,
    ):
        _warm(log)
        expected = _arrive()
        before = len(log.lines("hop"))
        memory, cpu, began = processes.resident(worker), processes.cpu_seconds(dispatcher), time.monotonic()
        lines = log.await_lines("hop", before + ARRIVALS, SECONDS + 60)[before:]
        spent, took = processes.cpu_seconds(dispatcher) - cpu, time.monotonic() - began
        grown = processes.resident(worker) - memory
    late = [began - expected[chain] for chain, _, began, _ in lines]
    return {
        "dispatcher": 100 * spent / took,
        "late p95": percentile(late, 95),
        "memory": grown,
    }


def _warm(log: processes.Log) -> None:
    before = len(log.lines("hop"))
    for number in range(20):
        rows.one(rows.agent(f"owner-{number % 4}"), iteration=HOPS - 1)
    log.await_lines("hop", before + 20, 60)


def _arrive() -> dict[str, float]:
    """Rows that become due one after the other; when, by their ids."""
    whose = [rows.agent(f"owner-{n}") for n in range(OWNERS)]
    # In one transaction: on a busy machine the first would be claimed before their times are read.
    with transaction.atomic():
        made = [
            rows.one(whose[n % OWNERS], iteration=HOPS - 1, due=Now(3 + n * SECONDS / ARRIVALS)).pk
            for n in range(ARRIVALS)
        ]
        due = dict(Execution.objects.filter(pk__in=made).values_list("pk", "next_run_at"))
    return {str(pk): moment.timestamp() for pk, moment in due.items()}

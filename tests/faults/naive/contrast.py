"""Drives the naive design through the faults that `make faults` strikes agency with, and counts."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from tests import servers
from tests.faults.processes import ROOT, eventually

QUIET_SECONDS = 6.0
"""Nothing happens for so long: what has not been done by then is lost."""


def run(jobs: int = 12, iterations: int = 4, delay: float = 4.0, kills: int = 3) -> dict[str, Any] | None:
    """What became of `jobs` of `iterations` each, `delay` seconds apart; `None` without a Valkey.

    `lost` iterations never ran, `twice` were committed more than once, and of the `provider_calls` only
    `provider_needed` had to be paid. A countdown longer than the broker's visibility timeout, here 3 s, is
    one of the faults: it needs no crash.
    """
    with servers.valkey() as broker, tempfile.TemporaryDirectory(prefix="agency-naive-") as home:
        if broker is None:
            return None
        os.environ |= {"NAIVE_BROKER": broker, "NAIVE_DATABASE": str(Path(home, "naive.sqlite3"))}
        from tests.faults.naive import app as naive

        naive.app.conf.broker_url = broker
        with closing(naive.database()) as rows:
            rows.executescript("PRAGMA journal_mode = WAL;" + naive.TABLES)
            for job in range(jobs):
                rows.execute("INSERT INTO job (id) VALUES (?)", (job,))
                naive.iterate.delay(job, 1, iterations, delay)
        workers = [_worker(), _worker()]
        try:
            # By then each job has its last delay before it: some hint is always with the broker.
            _strike(workers, kills, jobs * (iterations - 1))
            _await_quiet(naive)
        finally:
            for worker in workers:
                _kill(worker)
        return _counted(naive, jobs * iterations) | {"kills": kills + len(workers), "flushes": 1}


def _worker() -> "subprocess.Popen[bytes]":
    options = ("--pool", "threads", "--concurrency", "8", "--loglevel", "ERROR", "--without-gossip")
    return subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "tests.faults.naive.app", "--quiet", "worker", *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _kill(worker: "subprocess.Popen[bytes]") -> None:
    worker.send_signal(signal.SIGKILL)
    worker.wait()


def _strike(workers: "list[subprocess.Popen[bytes]]", kills: int, late: int) -> None:
    """A kill each two seconds; late in the work all are killed, and the broker forgets."""
    from tests.faults.naive import app as naive

    eventually(lambda: _count(naive, "bill"))
    for nth in range(kills):
        time.sleep(2.0)
        _kill(workers[nth % 2])
        workers[nth % 2] = _worker()
    eventually(lambda: _count(naive, "ledger") >= late)
    for worker in workers:
        _kill(worker)
    with naive.app.connection_for_write() as connection:
        connection.default_channel.client.flushall()
    workers[:] = [_worker(), _worker()]


def _await_quiet(naive: Any) -> None:
    before, since = -1, time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS + naive.MODEL_SECONDS:
        now = _count(naive, "bill")
        if now != before:
            before, since = now, time.monotonic()
        time.sleep(0.1)


def _count(naive: Any, table: str) -> int:
    with closing(naive.database()) as rows:
        return rows.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]


def _counted(naive: Any, needed: int) -> dict[str, Any]:
    with closing(naive.database()) as rows:
        (distinct,) = rows.execute("SELECT COUNT(*) FROM (SELECT DISTINCT job, n FROM ledger)").fetchone()
        (twice,) = rows.execute(
            "SELECT COUNT(*) FROM (SELECT 1 FROM ledger GROUP BY job, n HAVING COUNT(*) > 1)"
        ).fetchone()
        (calls,) = rows.execute("SELECT COUNT(*) FROM bill").fetchone()
    return {
        "iterations": needed,
        "lost": needed - distinct,
        "twice": twice,
        "provider_calls": calls,
        "provider_needed": needed,
    }

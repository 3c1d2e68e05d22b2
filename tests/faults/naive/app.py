"""The naive design's whole worker: `celery -A tests.faults.naive.app worker`. It imports nothing of agency.

A job is a row with a status; the task reads it, does the work, writes it and schedules the next iteration
with a countdown. What was done is noted in tables without any constraint, so that it can be counted.
"""

import os
import sqlite3
import time
from contextlib import closing

from celery import Celery

MODEL_SECONDS = 0.2
TABLES = """
    CREATE TABLE job (id INTEGER PRIMARY KEY, iteration INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE bill (job INTEGER, n INTEGER);
    CREATE TABLE ledger (job INTEGER, n INTEGER);
"""

app = Celery("naive", broker=os.environ.get("NAIVE_BROKER"))
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    task_ignore_result=True,
    broker_connection_retry_on_startup=True,
    # Kinder than the defaults (an hour, and a scan each 100 s): what a kill leaves comes back in seconds.
    broker_transport_options={
        "visibility_timeout": float(os.environ.get("NAIVE_VISIBILITY", "3")),
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
    },
)


def database() -> sqlite3.Connection:
    return sqlite3.connect(os.environ["NAIVE_DATABASE"], timeout=20, isolation_level=None)


@app.task
def iterate(job: int, n: int, iterations: int, delay: float) -> None:
    with closing(database()) as rows:
        (done,) = rows.execute("SELECT iteration FROM job WHERE id = ?", (job,)).fetchone()
        if done >= n:
            return
        rows.execute("INSERT INTO bill VALUES (?, ?)", (job, n))
        time.sleep(MODEL_SECONDS)
        rows.execute("UPDATE job SET iteration = ? WHERE id = ?", (n, job))
        rows.execute("INSERT INTO ledger VALUES (?, ?)", (job, n))
    if n < iterations:
        iterate.apply_async((job, n + 1, iterations, delay), countdown=delay)

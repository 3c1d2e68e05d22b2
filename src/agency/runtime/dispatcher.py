"""Wakes what is due and puts right what died, round after round. Two or more may run beside each other.

Marks the rows it wakes before it publishes, outside of any transaction; a row that stays due is woken
again, less and less often, so that busy workers are not flooded. The order in which rows are woken is not
the order in which they run: a wake-up stands for "there is work", and the claim decides whose turn it is.
"""

import threading
import uuid
from typing import Any

from django.db import Error, InterfaceError, close_old_connections, connections, transaction

from agency.enums import LoopStatus, Wakeup
from agency.execution.claims import database
from agency.models import Execution
from agency.models.clock import now_sql
from agency.redaction import safe_logger
from agency.runtime import conf, lifeline, queue
from agency.runtime.hint import hint
from agency.runtime.sweep import Sweeper

log = safe_logger("agency.runtime")

_TABLE = Execution._meta.db_table
_DUE = """
    SELECT id FROM {table}
    WHERE next_run_at <= {now} AND cancel_requested_at IS NULL
      AND (last_woken_at IS NULL OR last_woken_at < {backoff})
    ORDER BY next_run_at LIMIT {limit} {lock}
"""
# Materialized: PostgreSQL may run a subquery with a lock once for each row, and then no limit holds.
_MARK = """
    WITH due AS MATERIALIZED ({due})
    UPDATE {table} SET last_woken_at = {now}, wake_tries = wake_tries + 1
    WHERE id IN (SELECT id FROM due) RETURNING id, iteration + 1, fence, loop_status, mission_id
"""
_GROWTH = {
    "postgresql": "LEAST({first} * power(2, LEAST(wake_tries - 1, 20)), {longest})",
    "sqlite": "MIN({first} * (1 << MIN(wake_tries - 1, 20)), {longest})",
}


def mark_due() -> list[tuple[str, int, Wakeup]]:
    """Take the due rows whose turn it is to be woken: ids, iterations, and what they are due for."""
    alias = database()
    connection = connections[alias]
    settings = conf.current()
    growth = _GROWTH[connection.vendor].format(
        first=float(settings.WAKE_BACKOFF_SECONDS), longest=float(settings.WAKE_BACKOFF_MAX_SECONDS)
    )
    due = _DUE.format(
        table=_TABLE,
        now=f"(SELECT {now_sql(connection.vendor)})",
        backoff=now_sql(connection.vendor, f"-({growth})"),
        limit=settings.DISPATCH_BATCH,
        lock="FOR UPDATE SKIP LOCKED" if connection.vendor == "postgresql" else "",
    )
    sql = _MARK.format(table=_TABLE, now=now_sql(connection.vendor), due=due)
    with transaction.atomic(using=alias), connection.cursor() as cursor:
        cursor.execute(sql, [])
        rows = cursor.fetchall()
    return [(str(uuid.UUID(str(row))), iteration, _wakeup(*known)) for row, iteration, *known in rows]


def _wakeup(fence: int, loop_status: str | None, mission: Any) -> Wakeup:
    """What the row is due for."""
    if mission is None:
        return Wakeup.RUN_EXECUTION
    if fence == 0:
        return Wakeup.START_MISSION
    return Wakeup.RESUME_MISSION if loop_status == LoopStatus.WAITING else Wakeup.RUN_LOOP_ITERATION


class Dispatcher:
    """The loop of a dispatcher process; `stop()` ends it after the round."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._sweeper = Sweeper()

    def stop(self) -> None:
        self._stopped.set()

    def run(self) -> None:
        """Go round until stopped. A database that is away is waited for."""
        if not queue.has_broker():
            log.warning("dispatcher: the Celery app names no broker, so nothing is woken; workers must poll")
        while not self._stopped.is_set():
            lifeline.beat()
            try:
                self.round()
            except (Error, InterfaceError) as exc:
                log.warning("dispatcher: the database is away, trying again: %s", exc)
                connections[database()].close()
            self._stopped.wait(conf.current().DISPATCH_SECONDS)
        hint().close()

    def round(self) -> int:
        """Sweep, then wake; returns how many wake-ups were sent."""
        close_old_connections()
        hint().tend()
        self._sweeper.turn()
        if not queue.has_broker():
            return 0
        due = mark_due()
        for woken in due:
            queue.wake(*woken)
        return len(due)

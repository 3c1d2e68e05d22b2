"""Takes an execution for this process: one guarded statement, so that a row never has two claimers.

A claim is by id (from a wake-up; also a row whose lease ran out) or the next due one (from polling;
the sweep makes rows with a lost lease due). The crash-loop cap, a cancel and the deadline are part of
the guard: such rows are closed by the sweep.
"""

import time
import uuid
from typing import Any

from django.db import connections, transaction

from agency.enums import EventKind, ExecutionStatus, LoopStatus
from agency.execution.claims import Claim, database, uuid_value
from agency.models import Event, Execution
from agency.models.clock import now_sql
from agency.runtime import conf, process

_TABLE = Execution._meta.db_table
_SET = f"""
    status = '{ExecutionStatus.IN_PROGRESS}',
    loop_status = CASE WHEN loop_status = '{LoopStatus.WAITING}' THEN '{LoopStatus.RUNNING}'
                  ELSE loop_status END,
    next_run_at = NULL, last_woken_at = NULL, wake_tries = 0,
    fence = fence + 1, claim_id = %s, claim_owner = %s, claim_count = claim_count + 1,
    lease_until = {{lease}}, started_at = COALESCE(started_at, {{now}}),
    deadline_at = COALESCE(deadline_at, {{deadline}}), event_seq = event_seq + 1
"""
_RETURNED = "id, iteration + 1, fence, generation, event_seq, {left}"
_STATEMENTS = {
    "postgresql": (
        f"WITH chosen AS MATERIALIZED ({{chosen}} FOR UPDATE SKIP LOCKED) UPDATE {_TABLE} SET {_SET} "
        f"WHERE id = (SELECT id FROM chosen) RETURNING {_RETURNED}"
    ),
    "sqlite": f"UPDATE {_TABLE} SET {_SET} WHERE id = ({{chosen}}) RETURNING {_RETURNED}",
}
# Rows of a batch that are due in the same moment run in the order in which they were given.
_EQUALS = {"postgresql": "created_at, id", "sqlite": "rowid"}
_SECONDS_LEFT = {
    "postgresql": "EXTRACT(EPOCH FROM deadline_at - {now})::double precision",
    "sqlite": "(julianday(deadline_at) - julianday({now})) * 86400.0",
}


def claim(
    execution_id: str | uuid.UUID | None = None,
    expected_iteration: int | None = None,
    *,
    ignore_due: bool = False,
) -> Claim | None:
    """Claim one execution, or `None` when there is nothing to claim.

    `expected_iteration` guards against an outdated wake-up; `ignore_due` takes a row (by id) before
    its time, which tests use instead of waiting.
    """
    alias = database()
    connection = connections[alias]
    settings = conf.current()
    # As a subquery it is computed once and can bound an index scan, which a volatile function cannot.
    now = f"(SELECT {now_sql(connection.vendor)})"
    chosen, wanted = _chosen(connection, execution_id, expected_iteration, now, ignore_due)
    after = settings.DEADLINE_SECONDS
    sql = _STATEMENTS[connection.vendor].format(
        chosen=chosen,
        now=now,
        lease=now_sql(connection.vendor, repr(settings.LEASE_SECONDS)),
        deadline="NULL" if after is None else now_sql(connection.vendor, repr(float(after))),
        left=_SECONDS_LEFT[connection.vendor].format(now=now),
    )
    claim_id, owner = uuid.uuid4(), process.owner()
    set_values = [uuid_value(connection, claim_id), owner]
    choose_values = [*wanted, settings.CLAIM_CAP]
    values = choose_values + set_values if connection.vendor == "postgresql" else set_values + choose_values
    with transaction.atomic(using=alias), connection.cursor() as cursor:
        cursor.execute(sql, values)
        row = next(iter(cursor.fetchall()), None)
        return _begun(row, claim_id, owner) if row else None


def _chosen(
    connection: Any, execution_id: Any, expected_iteration: int | None, now: str, ignore_due: bool
) -> tuple[str, list[Any]]:
    """The SELECT of the row to take, and its values but the cap, which comes last."""
    if execution_id is None:
        guard, values, order = (
            f"next_run_at <= {now}",
            [],
            f"ORDER BY next_run_at, {_EQUALS[connection.vendor]}",
        )
    else:
        due = "next_run_at IS NOT NULL" if ignore_due else f"next_run_at <= {now}"
        guard, order = f"id = %s AND ({due} OR lease_until < {now})", ""
        values = [uuid_value(connection, execution_id)]
        if expected_iteration is not None:
            guard += " AND iteration + 1 = %s"
            values.append(expected_iteration)
    fit = f"cancel_requested_at IS NULL AND (deadline_at IS NULL OR deadline_at > {now}) AND claim_count < %s"
    return f"SELECT id FROM {_TABLE} WHERE {guard} AND {fit} {order} LIMIT 1", values


def _begun(row: Any, claim_id: uuid.UUID, owner: str) -> Claim:
    execution_id, iteration, fence, generation, seq, left = row
    made = Claim(
        execution_id=str(uuid.UUID(str(execution_id))),
        claim_id=claim_id,
        fence=fence,
        owner=owner,
        iteration=iteration,
        generation=generation,
        deadline=None if left is None else time.monotonic() + left,
    )
    Event.objects.create(
        execution_id=made.execution_id,
        seq=seq,
        kind=(EventKind.STARTED if fence == 1 else EventKind.RESUMED).value,
        generation=generation,
        iteration=iteration,
        data={"attempt": iteration, "fence": fence},
    )
    return made

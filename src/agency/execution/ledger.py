"""Commits an attempt in one statement: its ledger row and event, the execution's totals, and who goes on.

Fenced by the claim, as all that `append` writes.
"""

import uuid
from functools import cache
from typing import Any

from django.db import connections

from agency.agent.events import Usage
from agency.agent.text import cut
from agency.enums import EventKind, ExecutionStatus
from agency.errors import RunCancelled, StaleExecution
from agency.execution.append import Head, Target, fenced, lock_first, raw_uuid, written
from agency.execution.claims import Claim, database, owned
from agency.execution.conversation import ClosedAttempt
from agency.execution.signals import say_written
from agency.execution.storable import as_json, storable, storable_json
from agency.models import Event, Execution, Iteration
from agency.models.clock import now_sql
from agency.models.event import newest_seq_sql

_TABLE = Execution._meta.db_table
SUMMARY_LIMIT = 4_000
NOTICE_LIMIT = 500
_GIVEN = ("id", "generation", "iteration", "started_at")
_COUNTS = tuple(name for name in Usage.model_fields if name != "cost")
_READ = {
    "postgresql": ("(usage->>'{name}')::bigint", "(usage->>'{name}')::float8", "jsonb_build_object"),
    "sqlite": ("json_extract(usage, '$.{name}')", "json_extract(usage, '$.{name}')", "json_object"),
}
_EVENT = Target(
    Event._meta.db_table,
    {
        "execution_id": "x.id",
        "seq": "x.event_seq",
        "event_id": "?uuid",
        "kind": "?text",
        "generation": "x.generation",
        "iteration": "x.iteration",
        "step": "0",
        "author": "''",
        "content": "'[]'",
        "data": "?jsonb",
        "timestamp": "{now}",
    },
)
_BEFORE = (
    f"SELECT b.{{column}} FROM {Iteration._meta.db_table} b "
    "WHERE b.execution_id = x.id AND b.n = x.iteration - 1"
)
_BEGAN = (
    f"SELECT v.timestamp FROM {Event._meta.db_table} v WHERE v.execution_id = x.id "
    f"AND v.kind IN ('{EventKind.STARTED}', '{EventKind.ITERATION_STARTED}') "
    f"AND v.seq > COALESCE(({_BEFORE.format(column='event_seq')}), 0) ORDER BY v.seq LIMIT 1"
)
# An attempt follows the one before at once, under the same claim.
_AFTER_THE_LAST = f"({_BEFORE.format(column='finished_at')}), x.started_at"
_ROW = Target(
    Iteration._meta.db_table,
    {
        "execution_id": "x.id",
        "n": "x.iteration",
        "claim_id": "?uuid",
        "fence": "?bigint",
        "verdict": "?text",
        "summary": "?text",
        "feedback": "?text",
        "failure_code": "?text",
        "decision": "?jsonb",
        "state": "?jsonb",
        "usage": "?jsonb",
        "event_seq": "x.event_seq",
        "started_at": f"COALESCE({_AFTER_THE_LAST})",
        "finished_at": "{now}",
    },
)
_ROW_OF_LOOP = Target(_ROW.table, {**_ROW.columns, "started_at": f"COALESCE(({_BEGAN}), {_AFTER_THE_LAST})"})
"""A loop may have waited since the iteration before: what began this one is on record."""


def advance(
    claim: Claim, closed: ClosedAttempt, *, due_in: float | None = None, ending: bool = False
) -> None:
    """Commit the attempt; with `due_in` seconds, the claim is given back and the next one is due then.

    Raises `RunCancelled` if a cancel was asked for, unless the execution is `ending`, and `StaleExecution`
    if the claim is lost or the attempt does not follow the last one; then nothing is written.
    """
    connection = connections[database()]
    head = _head(connection.vendor, now_sql(connection.vendor, "?float8"), due_in is not None, ending)
    native = connection.features.has_native_uuid_field
    spent, cost = closed.usage, closed.usage.cost
    before: list[Any] = [*(getattr(spent, name) for name in _COUNTS), cost, cost]
    decision = storable_json(closed.decision)
    if due_in is not None:
        before += [float(due_in), decision]
    feedback = storable(closed.feedback)
    notice = _notice(closed, feedback)
    row = (
        raw_uuid(claim.claim_id, native),
        claim.fence,
        closed.verdict.value,
        cut(storable(closed.summary), SUMMARY_LIMIT),
        feedback,
        closed.failure_code,
        decision,
        storable_json(closed.state),
        as_json(spent.model_dump(mode="json")),
    )
    event = (raw_uuid(uuid.uuid4(), native), closed.kind.value, as_json(notice))
    values = [*before, *fenced(connection, claim), closed.n - 1]
    lock_first(connection, claim)
    target = _ROW_OF_LOOP if closed.kind is EventKind.ITERATION_COMPLETED else _ROW
    found = written(connection, head, values, [(_EVENT, [event]), (target, [row])])
    if found is None:
        raise _refusal(claim, closed, ending)
    say_written(database(), claim.execution_id, int(found[0]))


def _notice(closed: ClosedAttempt, feedback: str | None) -> dict[str, Any]:
    """What the event says: of an attempt its verdict, of a mission's iteration the decision."""
    said = cut(feedback or "", NOTICE_LIMIT) or None
    if closed.kind is EventKind.ATTEMPT_COMPLETED:
        told = {"attempt": closed.n, "feedback": said}
    else:
        told = {
            "summary": cut(storable(closed.summary), NOTICE_LIMIT),
            "reason": cut(storable(str((closed.decision or {}).get("reason") or "")), NOTICE_LIMIT) or None,
            "next_input": said,
        }
    return {**told, "verdict": closed.verdict.value, "failure_code": closed.failure_code}


def _refusal(claim: Claim, closed: ClosedAttempt, ending: bool) -> Exception:
    """Why the claim's row was not as it must be."""
    row = owned(claim).values_list("iteration", "cancel_requested_at").first()
    if row is None:
        return StaleExecution(f"{claim} is no longer what it was: another process went on with it")
    iteration, cancelled = row
    if cancelled is not None and not ending:
        return RunCancelled("a cancel was asked for")
    return StaleExecution(f"{claim} has committed attempt {iteration}; {closed.n} does not follow")


@cache
def _head(vendor: str, due: str, hands_on: bool, ending: bool) -> Head:
    """The UPDATE. What was spent is added by the database, which spares a look at the row."""
    count, real, make = _READ[vendor]
    sums = [f"'{name}', COALESCE({count.format(name=name)}, 0) + ?bigint" for name in _COUNTS]
    cost = real.format(name="cost")
    sums.append(f"'cost', COALESCE({cost} + ?float8, ?float8, {cost})")
    changes = [
        "iteration = iteration + 1",
        "iteration_fence = NULL",
        f"usage = {make}({', '.join(sums)})",
    ]
    if hands_on:
        due = due.replace("%%", "%")
        changes.append(f"next_run_at = {due}, claim_id = NULL, claim_owner = NULL, lease_until = NULL")
        changes.append("loop_decision = ?jsonb")
    if not ending:
        changes.append("claim_count = 0")
    return Head(
        f"UPDATE {_TABLE} SET {', '.join(changes)} "
        f"WHERE id = ?uuid AND claim_id = ?uuid AND status = '{ExecutionStatus.IN_PROGRESS}' "
        f"AND iteration = ?int {'' if ending else 'AND cancel_requested_at IS NULL'} RETURNING {{given}}",
        {**{name: name for name in _GIVEN}, "event_seq": f"{newest_seq_sql(f'{_TABLE}.id')} + 1"},
    )

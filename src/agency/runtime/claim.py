"""Takes an execution for this process: one guarded statement, so that a row never has two claimers.

A claim is by id (from a wake-up; also a row whose lease ran out) or the next due one whose turn it is
(from polling; the sweep makes rows with a lost lease due). The crash-loop cap, a cancel, the deadline, a
closed gate and the limits on concurrency are part of the guard.
"""

import re
import time
import uuid
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from django.db import IntegrityError, connections, transaction

from agency.enums import EventKind, ExecutionStatus, LoopStatus
from agency.execution import prepared
from agency.execution.claims import Claim, database, lost_number, uuid_value
from agency.execution.metadata import WAIT
from agency.execution.signals import say_written
from agency.models import Event, Execution, ProviderGate
from agency.models.clock import now_sql
from agency.models.event import newest_seq_sql
from agency.runtime import conf, lanes, process
from agency.runtime.fairness import Lane, Limits, Running, in_turn, served

LANES_TRIED = 10
SEATS_TRIED = 4
STATEMENTS_KEPT = 64

_TABLE = Execution._meta.db_table
_SET = f"""
    status = '{ExecutionStatus.IN_PROGRESS}',
    loop_status = CASE WHEN loop_status = '{LoopStatus.WAITING}' THEN '{LoopStatus.RUNNING}'
                  ELSE loop_status END,
    next_run_at = NULL, last_woken_at = NULL, wake_tries = 0,
    fence = fence + 1, claim_id = %(claim_id)s, claim_owner = %(claim_owner)s, claim_count = claim_count + 1,
    lease_until = {{lease}}, started_at = COALESCE(started_at, {{now}}),
    deadline_at = CASE WHEN mission_id IS NULL THEN COALESCE(deadline_at, {{deadline}}) ELSE deadline_at END,
    iteration_fence = CASE WHEN {{waits}} THEN iteration_fence ELSE COALESCE(iteration_fence, fence + 1) END,
    owner_seat = {{owner_seat}}, agent_seat = {{agent_seat}}, provider_seat = {{provider_seat}}
"""
# A look whether a wait is over is no part of the story: its claim begins no iteration and writes no event.
_WAITS = {
    "postgresql": f"(loop_status IS NOT NULL AND metadata->'{WAIT}' IS NOT NULL)",
    "sqlite": f"(loop_status IS NOT NULL AND json_extract(metadata, '$.{WAIT}') IS NOT NULL)",
}
_SEQ = f"{newest_seq_sql(f'{_TABLE}.id')} + 1"
_RETURNED = (
    f"id, iteration, iteration + 1 AS n, max_iterations, fence, generation, {_SEQ} AS event_seq, "
    "iteration_fence, mission_id, {waits} AS waits, {left} AS seconds"
)
_TOLD = "id, n, fence, generation, event_seq, iteration_fence, mission_id, waits, seconds"
# The claim that begins a loop's iteration says so; a later one, which takes over or goes on, resumes it, and
# so does one that will find no iteration left.
_KIND = f"""
    CASE WHEN fence = 1 THEN '{EventKind.STARTED}'
         WHEN iteration_fence = fence AND iteration < max_iterations THEN '{EventKind.ITERATION_STARTED}'
         ELSE '{EventKind.RESUMED}' END
"""
_SAY = f"""
    INSERT INTO {Event._meta.db_table}
        (execution_id, seq, event_id, kind, generation, iteration, step, author, content, data)
"""
_STATEMENTS = {
    # With its event in one statement, and so in one round trip and one commit.
    "postgresql": f"""
        WITH chosen AS MATERIALIZED ({{chosen}} FOR UPDATE SKIP LOCKED),
        taken AS (UPDATE {_TABLE} SET {_SET} WHERE id = (SELECT id FROM chosen) RETURNING {_RETURNED}),
        said AS ({_SAY} SELECT id, event_seq, %(event_id)s::uuid, {_KIND}, generation, n, 0, '', '[]',
                 jsonb_build_object('attempt', n, 'fence', fence) FROM taken WHERE NOT waits)
        SELECT {_TOLD} FROM taken
    """,
    "sqlite": f"UPDATE {_TABLE} SET {_SET} WHERE id = ({{chosen}}) "
    f"RETURNING id, iteration + 1, fence, generation, {_SEQ}, iteration_fence, mission_id, "
    f"{{waits}}, {{left}}",
}
_SAY_ALONE = f"""
    {_SAY} SELECT id, {_SEQ}, %(event_id)s, {_KIND}, generation, iteration + 1, 0, '', '[]',
    json_object('attempt', iteration + 1, 'fence', fence) FROM {_TABLE}
    WHERE claim_id = %(claim_id)s AND NOT {_WAITS["sqlite"]}
"""
_FIT = """
    cancel_requested_at IS NULL AND (deadline_at IS NULL OR deadline_at > {now}) AND claim_count < %(cap)s
"""
_OPEN_GATE = f"""
    NOT EXISTS (SELECT 1 FROM {ProviderGate._meta.db_table} g
                WHERE g.provider = %(provider)s AND g.not_before > {{now}})
"""
_OF_LANE = "owner_id = %(owner)s AND agent_id = %(agent)s AND provider = %(provider)s"
_HELD = f"FROM {_TABLE} r WHERE r.claim_id IS NOT NULL AND r.{{column}} = %({{whose}})s"
_ROOM = f"(SELECT COUNT(*) {_HELD} AND r.id <> %(id)s) < {{limit}}"
# The lowest number that nobody holds. Two claimers may find the same: the index lets one of them have it.
_SEAT = f"""
    (SELECT MIN(s.n) + 1
     FROM (SELECT 0 AS n UNION ALL SELECT r.{{whose}}_seat {_HELD} AND r.{{whose}}_seat IS NOT NULL) s
     WHERE NOT EXISTS (SELECT 1 {_HELD} AND r.{{whose}}_seat = s.n + 1))
"""
# How PostgreSQL and SQLite name the index in the first line of what they say.
_SEAT_LOST = re.compile(rf"{_TABLE}(_(owner|agent|provider)_seat_once|\.(owner|agent|provider)_seat)\b")
_COLUMNS = {"owner": "owner_id", "agent": "agent_id", "provider": "provider"}
# Rows of a batch that are due in the same moment run in the order in which they were given.
_EQUALS = {"postgresql": "created_at, id", "sqlite": "rowid"}
_SECONDS_LEFT = {
    "postgresql": "EXTRACT(EPOCH FROM deadline_at - {now})::double precision",
    "sqlite": "(julianday(deadline_at) - julianday({now})) * 86400.0",
}


class _Shape(NamedTuple):
    """What of a wanted row decides how its statement reads."""

    by_id: bool
    ignore_due: bool
    at_iteration: bool
    in_lane: bool


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The row to take: the one with this id, or else the next of the lane."""

    lane: Lane | None
    execution_id: str | uuid.UUID | None = None
    iteration: int | None = None
    ignore_due: bool = False
    beside: bool = False

    @property
    def shape(self) -> _Shape:
        return _Shape(
            self.execution_id is not None, self.ignore_due, self.iteration is not None, self.lane is not None
        )


def claim(
    execution_id: str | uuid.UUID | None = None,
    expected_iteration: int | None = None,
    *,
    in_turn_only: bool = False,
    ignore_due: bool = False,
    reserved: bool = False,
    beside: bool = False,
) -> Claim | None:
    """Claim one execution, or `None` when there is nothing to claim.

    Without an id: the due one whose turn it is. With one: that row; with `in_turn_only`, where the turn is
    another lane's, a row of that lane instead. `expected_iteration` guards against an outdated wake-up.
    `ignore_due` takes a row (by id) before its time and beyond any limit, which tests use instead of waiting;
    `reserved` takes one before its time but within the limits, and a claim that runs `beside` others no row
    that has lost workers before: see `alone`.
    """
    if execution_id is None:
        return _next_in_turn(lanes.look(), beside=beside)
    if ignore_due:
        return _take(_Wanted(None, execution_id, expected_iteration, ignore_due=True), Limits())
    found = lanes.look(execution_id)
    if found.hinted is None:
        return None
    wanted = _Wanted(found.hinted.lane, execution_id, expected_iteration, reserved, beside)
    if in_turn_only and (made := _next_in_turn(found, wanted, beside=beside)) is not None:
        return made
    return _take(wanted, Limits.of(found.hinted, conf.current()))


def _next_in_turn(found: lanes.Look, hinted: _Wanted | None = None, *, beside: bool) -> Claim | None:
    """The next row of the lane whose turn it is; in the hinted row's own lane, that row."""
    if not found.waiting:
        return None
    settings = conf.current()
    # One lane without limits is next, whatever runs.
    is_open = len(found.waiting) == 1 and Limits.of(found.waiting[0], settings) == Limits()
    now_running = Running({}) if is_open else lanes.running()
    for one in in_turn(found.waiting, now_running, served(), settings)[:LANES_TRIED]:
        limits = Limits.of(one, settings)
        made = _take(hinted, limits) if hinted is not None and one.lane == hinted.lane else None
        made = made or _take(_Wanted(one.lane, beside=beside), limits)
        if made is not None:
            served().note(one.lane)
            return made
    return None


def _take(wanted: _Wanted, limits: Limits) -> Claim | None:
    """The claim of the wanted row. Whoever loses a seat to another claimer looks for another one.

    So does who found an older number of an event than the newest, since the row changed hands meanwhile.
    """
    for _ in range(SEATS_TRIED):
        try:
            return _take_once(wanted, limits)
        except IntegrityError as refused:
            if not (_SEAT_LOST.search(str(refused).partition("\n")[0]) or lost_number(refused)):
                raise
    return None


def _take_once(wanted: _Wanted, limits: Limits) -> Claim | None:
    alias = database()
    connection = connections[alias]
    settings = conf.current()
    vendor, after = connection.vendor, settings.DEADLINE_SECONDS
    sql = _statement(
        vendor,
        wanted.shape,
        limits,
        # As a subquery it is computed once and can bound an index scan, which a volatile function cannot.
        f"(SELECT {now_sql(vendor)})",
        now_sql(vendor, repr(settings.LEASE_SECONDS)),
        "NULL" if after is None else now_sql(vendor, repr(float(after))),
    )
    claim_id, owner = uuid.uuid4(), process.owner()
    values = {
        "claim_id": uuid_value(connection, claim_id),
        "claim_owner": owner,
        "event_id": uuid_value(connection, uuid.uuid4()),
        "cap": min(settings.CLAIM_CAP, settings.ALONE_AFTER) if wanted.beside else settings.CLAIM_CAP,
        "id": uuid_value(connection, wanted.execution_id or uuid.UUID(int=0)),
        "iteration": wanted.iteration,
    }
    if wanted.lane is not None:
        values |= {"owner": wanted.lane.owner, "agent": wanted.lane.agent, "provider": wanted.lane.provider}
    row = _run(connection, sql, values)
    return None if row is None else _begun(row, claim_id, owner, wanted.lane is not None)


def _run(connection: Any, sql: str, values: dict[str, Any]) -> Any:
    """The row that was taken; its event is written in the same statement or transaction."""
    if connection.vendor == "postgresql":
        # A refused seat must not spoil a transaction of the caller.
        around = transaction.atomic(using=connection.alias) if connection.in_atomic_block else nullcontext()
        with around:
            return next(iter(prepared.rows(connection, sql, values)), None)
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        cursor.execute(sql, values)
        row = next(iter(cursor.fetchall()), None)
        if row is not None:
            cursor.execute(_SAY_ALONE, values)
        return row


@lru_cache(STATEMENTS_KEPT)
def _statement(vendor: str, shape: _Shape, limits: Limits, now: str, lease: str, deadline: str) -> str:
    asked = {name: getattr(limits, name) for name in _COLUMNS}
    return _STATEMENTS[vendor].format(
        chosen=_chosen(vendor, shape, asked, now),
        now=now,
        lease=lease,
        deadline=deadline,
        waits=_WAITS[vendor],
        left=_SECONDS_LEFT[vendor].format(now=now),
        **{
            f"{whose}_seat": "NULL" if limit is None else _SEAT.format(whose=whose, column=_COLUMNS[whose])
            for whose, limit in asked.items()
        },
    )


def _chosen(vendor: str, shape: _Shape, limits: dict[str, int | None], now: str) -> str:
    """The SELECT of the row to take."""
    due, order = f"next_run_at <= {now}", ""
    if not shape.by_id:
        guards = [_OF_LANE, due]
        order = f"ORDER BY next_run_at, {_EQUALS[vendor]}"
    elif shape.ignore_due:
        guards = ["id = %(id)s", f"(next_run_at IS NOT NULL OR lease_until < {now})"]
    else:
        guards = ["id = %(id)s", f"({due} OR lease_until < {now})"]
    if shape.at_iteration:
        guards.append("iteration + 1 = %(iteration)s")
    guards.append(_FIT.format(now=now))
    if shape.in_lane:
        guards.append(_OPEN_GATE.format(now=now))
    guards += [
        _ROOM.format(whose=whose, column=_COLUMNS[whose], limit=int(limit))
        for whose, limit in limits.items()
        if limit is not None
    ]
    return f"SELECT id FROM {_TABLE} WHERE {' AND '.join(guards)} {order} LIMIT 1"


def _begun(row: Any, claim_id: uuid.UUID, owner: str, is_gated: bool) -> Claim:
    found, iteration, fence, generation, seq, began, mission, waits, left = row
    execution_id = str(uuid.UUID(str(found)))
    if not waits:
        say_written(database(), execution_id, seq)
    return Claim(
        execution_id=execution_id,
        claim_id=claim_id,
        fence=fence,
        owner=owner,
        iteration=iteration,
        generation=generation,
        deadline=None if left is None else time.monotonic() + left,
        attempt_deadline=conf.attempt_deadline(),
        is_gated=is_gated,
        is_mission=mission is not None,
        # Of a definition an attempt may have been begun under a claim that went on to it.
        is_fresh=fence == 1 or (mission is not None and began == fence),
        is_waiting=bool(waits),
    )

"""Reads which lanes have due work and what is running: all that a fair choice needs, in a query or two.

Looks at the oldest due rows; when there are more than it looks at, it also walks from lane to lane over an
index, so that no batch, however large, hides another owner. Changes nothing and takes no locks.
"""

import json
import os
from dataclasses import dataclass, field
from typing import Any

from django.db import connections

from agency.execution import prepared
from agency.execution.claims import database, uuid_value
from agency.models import ConfiguredAgent, Execution, ProviderGate
from agency.models.clock import now_sql
from agency.runtime.fairness import Lane, Running, Waiting

WINDOW = 200
"""How many due rows, and how many lanes, one look takes in."""

_TABLE = Execution._meta.db_table
_LANE = "owner_id, agent_id, provider"
_OLDEST = f"""
    SELECT {_LANE}, MIN(next_run_at) AS since, COUNT(*) AS due, 0 AS step
    FROM (SELECT {_LANE}, next_run_at FROM {_TABLE}
          WHERE next_run_at <= {{now}} AND cancel_requested_at IS NULL
          ORDER BY next_run_at LIMIT {WINDOW}) oldest
    GROUP BY {_LANE}
"""
_HINTED = f"SELECT {_LANE}, next_run_at AS since, 0 AS due, -1 AS step FROM {_TABLE} WHERE id = %s"
_HEAD = f"""
    SELECT e.id FROM {_TABLE} e WHERE e.next_run_at IS NOT NULL {{beyond}}
    ORDER BY e.owner_id, e.agent_id, e.provider, e.next_run_at LIMIT 1
"""
_BEYOND = "AND (e.owner_id, e.agent_id, e.provider) > ({})"
_OF_LAST = "p.owner_id, p.agent_id, p.provider"
_WALK = f"""
    SELECT h.owner_id, h.agent_id, h.provider, h.next_run_at AS since,
           CASE WHEN h.next_run_at <= {{now}} THEN 1 ELSE 0 END AS due, walk.step
    FROM (WITH RECURSIVE walk(id, step) AS (
              SELECT ({{first}}), 1
              UNION ALL
              SELECT ({_HEAD.format(beyond=_BEYOND.format(_OF_LAST))}), walk.step + 1
              FROM walk JOIN {_TABLE} p ON p.id = walk.id WHERE walk.step < {WINDOW})
          SELECT id, step FROM walk) walk
    JOIN {_TABLE} h ON h.id = walk.id
"""
_TOLD = f"""
    SELECT d.owner_id, d.agent_id, d.provider, {{waited}}, d.due, d.step, a.limits,
           COALESCE(g.not_before > {{now}}, FALSE)
    FROM ({{lanes}}) d
    JOIN {ConfiguredAgent._meta.db_table} a ON a.id = d.agent_id
    LEFT JOIN {ProviderGate._meta.db_table} g ON g.provider = d.provider
"""
_WAITED = {
    "postgresql": "EXTRACT(EPOCH FROM {now} - d.since)::double precision",
    "sqlite": "(julianday({now}) - julianday(d.since)) * 86400.0",
}
_RUNNING = f"SELECT {_LANE}, COUNT(*) FROM {_TABLE} WHERE claim_id IS NOT NULL GROUP BY {_LANE}"


@dataclass(slots=True)
class Look:
    """What one look found. `hinted` is the lane of the row that was asked about, due or not."""

    waiting: list[Waiting] = field(default_factory=list[Waiting])
    hinted: Waiting | None = None
    is_backlog: bool = False


def look(hint: Any = None) -> Look:
    """The lanes with due work, each once; `hint` is the id of a row whose lane is wanted too."""
    connection = connections[database()]
    if hint is None:
        rows = _told(connection, _OLDEST, [])
    else:
        rows = _told(connection, f"{_OLDEST} UNION ALL {_HINTED}", [uuid_value(connection, hint)])
    found = Look(is_backlog=sum(row[4] for row in rows) >= WINDOW)
    for row in rows:
        if row[5] < 0:
            found.hinted = _waiting(row)
        else:
            found.waiting.append(_waiting(row))
    if found.is_backlog:
        known = {one.lane for one in found.waiting}
        found.waiting += [one for one in walk() if one.lane not in known]
    return found


def running() -> Running:
    """What is claimed now, also by owners that have died unnoticed."""
    return Running({Lane(*row[:3]): row[3] for row in _rows(connections[database()], _RUNNING, [])})


_resume_after: dict[int, Lane] = {}


def walk() -> list[Waiting]:
    """Lanes with due work by the order of their index, from where this process's last walk ended."""
    connection = connections[database()]
    last = _resume_after.pop(os.getpid(), None)
    beyond, values = ("", []) if last is None else (_BEYOND.format("%s, %s, %s"), [*_key(last)])
    rows = _told(connection, _WALK.replace("{first}", _HEAD.format(beyond=beyond)), values)
    rows.sort(key=lambda row: row[5])
    if rows and rows[-1][5] == WINDOW:
        _resume_after[os.getpid()] = Lane(*rows[-1][:3])
    return [_waiting(row) for row in rows if row[4]]


def _key(lane: Lane) -> tuple[Any, Any, str]:
    return lane.owner, lane.agent, lane.provider


def _told(connection: Any, lanes: str, values: list[Any]) -> list[Any]:
    # As a subquery it is computed once and can bound an index scan, which a volatile function cannot.
    now = f"(SELECT {now_sql(connection.vendor)})"
    sql = _TOLD.format(lanes=lanes, waited=_WAITED[connection.vendor], now="{now}")
    return _rows(connection, sql.replace("{now}", now), values)


def _rows(connection: Any, sql: str, values: list[Any]) -> list[Any]:
    if connection.vendor == "postgresql":
        return prepared.rows(connection, sql, values)
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchall()


def _waiting(row: Any) -> Waiting:
    owner, agent, provider, seconds, _, _, limits, is_shut = row
    return Waiting(Lane(owner, agent, provider), seconds or 0.0, _concurrency(limits), bool(is_shut))


def _concurrency(limits: Any) -> int | None:
    """What an agent's row says of itself; anything but a whole number says nothing."""
    said = json.loads(limits) if isinstance(limits, str) else limits
    wanted = said.get("concurrency") if isinstance(said, dict) else None
    return wanted if isinstance(wanted, int) and not isinstance(wanted, bool) else None

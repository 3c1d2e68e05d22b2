"""The statements of a beat: one for all claims of a process, to renew, end or look at their leases.

Each tells of the claims that are still ours whether a cancel is asked for and whether their time is over.
"""

import uuid

from django.db import connections

from agency.enums import ExecutionStatus
from agency.execution.claims import database, uuid_value
from agency.models import Execution
from agency.models.clock import now_sql
from agency.runtime import conf

Told = dict[uuid.UUID, tuple[bool, bool]]

_TABLE = Execution._meta.db_table
_OURS = f"claim_id IN ({{claims}}) AND status = '{ExecutionStatus.IN_PROGRESS}'"
_TOLD = "claim_id, cancel_requested_at, COALESCE(deadline_at < {now}, FALSE)"
_LOOK = f"SELECT {_TOLD} FROM {_TABLE} WHERE {_OURS}"
_END = f"UPDATE {_TABLE} SET lease_until = {{now}} WHERE {_OURS} RETURNING {_TOLD}"
_RENEW = {
    # A row that someone's transaction holds must not keep the others from being renewed.
    "postgresql": (
        f"WITH free AS MATERIALIZED (SELECT id FROM {_TABLE} WHERE {_OURS} FOR UPDATE SKIP LOCKED) "
        f"UPDATE {_TABLE} SET lease_until = {{lease}} WHERE id IN (SELECT id FROM free) RETURNING {_TOLD}"
    ),
    "sqlite": f"UPDATE {_TABLE} SET lease_until = {{lease}} WHERE {_OURS} RETURNING {_TOLD}",
}
# Not `cancel_requested_at IS NOT NULL`: SQLite 3.40 gives 1 for that in RETURNING, whatever the column holds.


def renew(claims: list[uuid.UUID]) -> Told:
    """Let them live for another lease; a row that somebody's transaction holds is left out."""
    return _tell(_RENEW[connections[database()].vendor], claims)


def look(claims: list[uuid.UUID]) -> Told:
    return _tell(_LOOK, claims)


def end(claims: list[uuid.UUID]) -> Told:
    """Let them go now: whoever comes next may take them."""
    return _tell(_END, claims)


def _tell(statement: str, claims: list[uuid.UUID]) -> Told:
    if not claims:
        return {}
    connection = connections[database()]
    sql = statement.format(
        lease=now_sql(connection.vendor, repr(conf.current().LEASE_SECONDS)),
        now=now_sql(connection.vendor),
        claims=", ".join(["%s"] * len(claims)),
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [uuid_value(connection, claim) for claim in claims])
        return {
            uuid.UUID(str(claim)): (cancelled is not None, bool(late))
            for claim, cancelled, late in cursor.fetchall()
        }

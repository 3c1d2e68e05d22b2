"""How the queue stands: what is due and for how long, what runs, whose it is, which providers are shut.

For health, doctor and metrics. Reads only, over the indexes of due and claimed rows.
"""

from dataclasses import dataclass
from typing import Any

from django.db import connections
from django.db.models import Count, Q, QuerySet

from agency.execution.claims import database
from agency.models import Execution, ProviderGate
from agency.models.clock import Now, now_sql


@dataclass(frozen=True, slots=True)
class QueueState:
    """`due`: rows that wait for a worker now; `lag`: seconds for which the oldest of them does, 0 for none.

    `later`: rows that are due at a later time; `claimed`: rows that a worker runs.
    """

    due: int
    lag: float
    later: int
    claimed: int


@dataclass(frozen=True, slots=True)
class OwnerState:
    """One owner's share; `owner` is the primary key."""

    owner: Any
    due: int
    claimed: int


@dataclass(frozen=True, slots=True)
class ShutGate:
    """A provider that is asked no more for `seconds`, after `failures` failed calls in a row."""

    provider: str
    seconds: float
    failures: int


def queue_state() -> QueueState:
    """The whole queue in figures."""
    counts = _rows().aggregate(
        due=Count("pk", filter=_due()),
        later=Count("pk", filter=Q(next_run_at__gt=Now())),
        claimed=Count("pk", filter=Q(claim_id__isnull=False)),
    )
    return QueueState(lag=_lag(), **counts)


def owner_states() -> list[OwnerState]:
    """Who has due or claimed rows, the most of them first."""
    shares = (
        _rows()
        .filter(_due() | Q(claim_id__isnull=False))
        .values("owner_id")
        .annotate(due=Count("pk", filter=_due()), claimed=Count("pk", filter=Q(claim_id__isnull=False)))
        .order_by("-due", "-claimed", "owner_id")
    )
    return [OwnerState(one["owner_id"], one["due"], one["claimed"]) for one in shares]


def shut_gates() -> list[ShutGate]:
    """The providers whose executions are not claimed now."""
    connection = connections[database()]
    sql = f"""
        SELECT provider, {_SECONDS[connection.vendor].format(of="not_before", since="{now}")}, failures
        FROM {ProviderGate._meta.db_table} WHERE not_before > {{now}} ORDER BY provider
    """
    return [ShutGate(*row) for row in _read(sql)]


_SECONDS = {
    "postgresql": "EXTRACT(EPOCH FROM {of} - {since})::double precision",
    "sqlite": "(julianday({of}) - julianday({since})) * 86400.0",
}


def _rows() -> QuerySet[Execution]:
    """What is due or claimed: the two partial indexes, not the table."""
    rows = Execution.objects.using(database()).order_by()
    return rows.filter(Q(next_run_at__isnull=False) | Q(claim_id__isnull=False))


def _due() -> Q:
    return Q(next_run_at__lte=Now(), cancel_requested_at__isnull=True)


def _lag() -> float:
    connection = connections[database()]
    sql = f"""
        SELECT {_SECONDS[connection.vendor].format(of="{now}", since="next_run_at")}
        FROM {Execution._meta.db_table} WHERE next_run_at <= {{now}} AND cancel_requested_at IS NULL
        ORDER BY next_run_at LIMIT 1
    """
    rows = _read(sql)
    return max(0.0, rows[0][0]) if rows else 0.0


def _read(sql: str) -> list[Any]:
    connection = connections[database()]
    with connection.cursor() as cursor:
        cursor.execute(sql.replace("{now}", f"(SELECT {now_sql(connection.vendor)})"), [])
        return cursor.fetchall()

"""Everything that a run left in the database, as JSON: the checker never asks the database itself."""

import platform
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import celery
import django
from django.db import connection

from agency.execution.invariants import violations
from agency.models import Event, Execution, Iteration, Step
from agency.runtime import conf

_COLUMNS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "execution": (
        Execution,
        (
            *("id", "status", "iteration", "fence", "claim_id", "claim_count", "next_run_at", "event_seq"),
            *("input", "failure_code", "failure_summary", "created_at", "started_at", "finished_at"),
            *("cancel_requested_at", "generation"),
        ),
    ),
    "iteration": (Iteration, ("execution_id", "n", "claim_id", "fence", "verdict")),
    "event": (Event, ("execution_id", "seq", "kind", "iteration", "generation", "data", "timestamp")),
    "step": (Step, ("execution_id", "key", "status", "effect", "idempotency_key")),
}


def dump(seconds: float) -> dict[str, Any]:
    """The tables, what agency's own invariants say, how long the run took, and the versions of what ran."""
    connection.close()
    tables = {name: list(_rows(model, columns)) for name, (model, columns) in _COLUMNS.items()}
    broken = {one.invariant: one.count for one in violations(conf.current().CLAIM_CAP)}
    return {**tables, "broken": broken, "seconds": round(seconds, 1), "versions": _versions()}


def _rows(model: Any, columns: tuple[str, ...]) -> Iterable[dict[str, Any]]:
    for row in model.objects.order_by("pk").values(*columns).iterator():
        yield {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.timestamp()
    return value if isinstance(value, dict | list | str | int | float | None) else str(value)


def _versions() -> dict[str, str]:
    with connection.cursor() as cursor:
        ask = "SHOW server_version" if connection.vendor == "postgresql" else "SELECT sqlite_version()"
        cursor.execute(ask)
        database = cursor.fetchone()[0]
    return {
        "python": platform.python_version(),
        "django": django.get_version(),
        "celery": celery.__version__,
        connection.vendor: str(database),
    }

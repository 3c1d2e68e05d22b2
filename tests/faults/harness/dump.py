"""Everything that a run left in the database, as JSON: the checker never asks the database itself."""

import platform
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import celery
import django
from django.db import connection

from agency.execution.invariants import violations
from agency.models import Event, Execution, Iteration, Message, Step
from agency.runtime import conf
from tests.faults.harness.provider import ORDER, ROUNDS

OTHER_ENDS = {"cancel": "cancelled", "expiry": "failed"}
"""How an order of this race ends where the answers have lost it."""
_COLUMNS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "execution": (
        Execution,
        (
            *("id", "status", "iteration", "fence", "claim_id", "claim_count", "next_run_at"),
            *("input", "failure_code", "failure_summary", "created_at", "started_at", "finished_at"),
            *("cancel_requested_at", "generation", "mission_id", "config"),
        ),
    ),
    "iteration": (Iteration, ("execution_id", "n", "claim_id", "fence", "verdict")),
    "event": (Event, ("execution_id", "seq", "kind", "iteration", "generation", "data", "timestamp")),
    "message": (Message, ("thread__execution__id", "said_by", "content")),
    "step": (Step, ("execution_id", "key", "status", "effect", "idempotency_key")),
}


def dump(seconds: float) -> dict[str, Any]:
    """The tables, what agency's own invariants say, how long the run took, and the versions of what ran."""
    connection.close()
    tables = {name: list(_rows(model, columns)) for name, (model, columns) in _COLUMNS.items()}
    for row in tables["execution"]:
        config = row.pop("config")
        if row["mission_id"] is not None:
            row["input"] = ordered(config["mission"], row["status"], row["iteration"])
    broken = {one.invariant: one.count for one in violations(conf.current().CLAIM_CAP)}
    return {**tables, "broken": broken, "seconds": round(seconds, 1), "versions": _versions()}


def ordered(mission: dict[str, Any], status: str, done: int) -> dict[str, Any]:
    """The order that a mission stands for, in the form of a definition's input.

    What a cancel or an expiry has won against the answers ends as it may, after the rounds that are done.
    """
    number, mood = ORDER.findall(mission["prompt"])[0]
    order = {"number": int(number), "mood": mood, "loop": True, "race": mission["name"]}
    rounds = int(ROUNDS.findall(mission["prompt"])[0])
    if OTHER_ENDS.get(mission["name"]) == status:
        return {**order, "attempts": done, "ending": status}
    return {**order, "attempts": rounds}


def _rows(model: Any, columns: tuple[str, ...]) -> Iterable[dict[str, Any]]:
    rows = model.objects.filter(said_by="person") if model is Message else model.objects.all()
    for row in rows.order_by("pk").values(*columns).iterator():
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

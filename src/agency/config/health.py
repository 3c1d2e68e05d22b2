"""Health checks for supervisors and load balancers: alive, and ready to take requests."""

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agency.runtime.broker import trouble
from agency.runtime.queue import has_broker
from agency.runtime.queue_state import queue_state

FRESH_SECONDS = 5.0
_migrated: set[str] = set()
_seen: dict[str, tuple[float, Any]] = {}


@never_cache
@require_safe
def live(request: HttpRequest) -> JsonResponse:
    """The process answers. Asks nothing of the database, so that a slow one does not restart it."""
    return JsonResponse({"status": "live"})


@never_cache
@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """200 when the database answers and has every migration, else 503 with the reason.

    Tells beside it how the queue stands (`lag` is the age of the oldest due row in seconds) and whether the
    broker takes wake-ups; without it, workers find their work themselves, so it makes nothing unready.
    """
    try:
        reason = _not_ready()
        queue = None if reason else _queue()
    except DatabaseError:
        reason = "the database does not answer"
    if reason:
        return JsonResponse({"status": "not ready", "reason": reason}, status=503)
    return JsonResponse({"status": "ready", "queue": queue, "broker": _broker()})


def _queue() -> dict[str, Any]:
    return _lately("queue", lambda: asdict(queue_state()))


def _broker() -> str:
    if not has_broker():
        return "none"
    return _lately("broker", lambda: "away" if trouble() else "answers")


def _lately(name: str, look: Callable[[], Any]) -> Any:
    """What was seen a few seconds ago, or what a new look finds: many may ask, and often."""
    seen = _seen.get(name)
    if seen is None or time.monotonic() > seen[0] + FRESH_SECONDS:
        seen = _seen[name] = (time.monotonic(), look())
    return seen[1]


def _not_ready() -> str | None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    if connection.alias in _migrated:
        return None
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        return "migrations are missing: run `python -m django migrate`"
    _migrated.add(connection.alias)
    return None

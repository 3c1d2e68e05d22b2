"""Health checks for supervisors and load balancers: alive, and ready to take requests."""

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

_migrated: set[str] = set()


@never_cache
@require_safe
def live(request: HttpRequest) -> JsonResponse:
    """The process answers. Asks nothing of the database, so that a slow one does not restart it."""
    return JsonResponse({"status": "live"})


@never_cache
@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """200 when the database answers and has every migration, else 503 with the reason."""
    try:
        reason = _not_ready()
    except DatabaseError:
        reason = "the database does not answer"
    if reason:
        return JsonResponse({"status": "not ready", "reason": reason}, status=503)
    return JsonResponse({"status": "ready"})


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

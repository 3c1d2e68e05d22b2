"""Pages by cursor: newest first, by (created_at, id), so that new rows never shift what was not read yet."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from django.core import signing
from django.db.models import Model, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from agency.api.problems import invalid

M = TypeVar("M", bound=Model)
T = TypeVar("T")
SALT = "agency.api.cursor"
LIMIT = 50
MAX_LIMIT = 200


def page(rows: QuerySet[M], cursor: str | None, limit: int, show: Callable[[M], T]) -> dict[str, Any]:
    """`{"items", "next"}`: at most `limit` rows after `cursor`; `next` is None on the last page."""
    if cursor is not None:
        rows = rows.filter(_after(rows, *_read(cursor)))
    found = list(rows.order_by("-created_at", "-id")[: limit + 1])
    more = len(found) > limit
    return {"items": [show(row) for row in found[:limit]], "next": _write(found[limit - 1]) if more else None}


def _after(rows: QuerySet[Any], created_at: datetime, row_id: UUID) -> Q:
    """The stored moment is compared, not our rendering of it: SQLite holds text of varying precision."""
    last_seen = rows.model._default_manager.filter(pk=row_id).order_by().values("created_at")[:1]
    moment = Coalesce(Subquery(last_seen), Value(created_at))
    return Q(created_at__lt=moment) | Q(created_at=moment, id__lt=row_id)


def _write(row: Any) -> str:
    return signing.dumps([row.created_at.isoformat(), str(row.id)], salt=SALT)


def _read(cursor: str) -> tuple[datetime, UUID]:
    try:
        created_at, row_id = signing.loads(cursor, salt=SALT)
        return datetime.fromisoformat(created_at), UUID(row_id)
    except (signing.BadSignature, ValueError) as exc:
        raise invalid(
            "cursor is not one of ours: take `next` of the page before, unchanged", "cursor"
        ) from exc

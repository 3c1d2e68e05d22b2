"""Who may see what: the one permission function. A row that is not visible does not exist for a caller."""

from typing import Any, TypeVar

from django.db.models import Model, QuerySet

M = TypeVar("M", bound=Model)


def visible_to(user: Any, rows: QuerySet[M]) -> QuerySet[M]:
    """`rows` that `user` may see: their own; a superuser sees all, an anonymous user none.

    Each model names the path to its owner in `OWNER_PATH`, so that child rows follow their parent.
    """
    if user is None or not user.is_authenticated or not user.is_active:
        return rows.none()
    if user.is_superuser:
        return rows
    path: str = rows.model.OWNER_PATH  # pyright: ignore[reportAttributeAccessIssue]
    return rows.filter(**{path: user})

"""Plain INSERTs for the journal's hot path, where building model instances would cost more than writing.

Values are as the database wants them: JSON as text, UUIDs by `claims.uuid_value`.
"""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from django.db import connections
from django.db.models import Model
from pydantic_core import to_jsonable_python

from agency.models.clock import now_sql

_NOW = "{now}"
NOW = object()
"""As a column's value: the database's present moment."""


def insert(
    using: str, model: type[Model], rows: Sequence[dict[str, Any]], *, unless: Sequence[str] = ()
) -> None:
    """Insert rows of equal columns.

    A row that is there already, by its columns `unless`, is overwritten but for its `created_at`.
    """
    connection = connections[using]
    columns = tuple(rows[0])
    moments = tuple(column for column in columns if rows[0][column] is NOW)
    sql = _statement(model._meta.db_table, columns, moments, len(rows), tuple(unless))
    values = [row[column] for row in rows for column in columns if column not in moments]
    with connection.cursor() as cursor:
        cursor.execute(sql.replace(_NOW, now_sql(connection.vendor)), values)


def as_json(value: Any) -> str | None:
    """JSON text, strictly: Python's NaN and infinities, which a database refuses, become text."""
    if value is None:
        return None
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        finite = to_jsonable_python(value, inf_nan_mode="strings")
        return json.dumps(finite, ensure_ascii=False, allow_nan=False)


@cache
def _statement(
    table: str,
    columns: tuple[str, ...],
    moments: tuple[str, ...],
    count: int,
    unless: tuple[str, ...],
) -> str:
    row = "(" + ", ".join(_NOW if column in moments else "%s" for column in columns) + ")"
    names = ", ".join(f'"{column}"' for column in columns)
    sql = f"INSERT INTO {table} ({names}) VALUES {', '.join([row] * count)}"
    if not unless:
        return sql
    same = ", ".join(f'"{column}"' for column in unless)
    kept = (*unless, "created_at")
    changes = ", ".join(f'"{name}" = excluded."{name}"' for name in columns if name not in kept)
    return f"{sql} ON CONFLICT ({same}) DO UPDATE SET {changes}"

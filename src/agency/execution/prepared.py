"""Runs a statement on PostgreSQL past Django's cursor, prepared where the connection stays ours.

A prepared statement is neither parsed again nor, as a rule, planned again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

_PREPARE_OTHERS_AFTER = 5
"""Uses after which the driver prepares a statement that we do not ask it to prepare: its own default."""


def rows(connection: Any, sql: str, values: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """What the statement returns. Whoever watches the connection's statements sees it too."""
    from django.db.backends.postgresql.psycopg_any import is_psycopg3

    connection.ensure_connection()
    with connection.wrap_database_errors:
        if connection.execute_wrappers or not is_psycopg3:
            with connection.cursor() as cursor:
                cursor.execute(sql, values)
                return cursor.fetchall()
        from psycopg import Cursor

        session = connection.connection
        # Behind a pooler that hands out another session for each transaction nothing can stay prepared.
        lasting = not connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS")
        if lasting and session.prepare_threshold is None:  # Django's way to say: never
            session.prepare_threshold = _PREPARE_OTHERS_AFTER
        with Cursor(session) as cursor:
            return cursor.execute(sql, values, prepare=lasting).fetchall()

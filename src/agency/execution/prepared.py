"""Runs a statement on PostgreSQL past Django's cursor, prepared where the connection stays ours.

A prepared statement is neither parsed again nor, as a rule, planned again.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

_PREPARE_OTHERS_AFTER = 5
"""Uses after which the driver prepares a statement that we do not ask it to prepare: its own default."""
_MOST = 50
"""How many statements a session keeps for libpq; any beyond are left to the driver."""
_SUCCEEDED = (1, 2)
"""libpq's PGRES_COMMAND_OK and PGRES_TUPLES_OK."""
_NAME = re.compile(r"%\((\w+)\)s")
_kept: "WeakKeyDictionary[Any, dict[str, bytes]]" = WeakKeyDictionary()


def rows(connection: Any, sql: str, values: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """What the statement returns. Whoever watches the connection's statements sees it too.

    Values are for `%s`, or by name for `%(name)s`; the server must be able to tell their types.
    """
    if isinstance(values, Mapping):
        sql, names = _placed(sql)
        values = [values[name] for name in names]
    known = _known(connection, sql)
    with connection.wrap_database_errors:
        if known is None:
            return _by_cursor(connection, sql, values)
        from psycopg.adapt import Transformer

        session = connection.connection
        result = _at_once(session, known, sql, values)
        reader = Transformer(session)
        reader.set_pgresult(result)
        return reader.load_rows(0, result.ntuples, tuple)


def first(connection: Any, sql: str, values: Sequence[Any]) -> tuple[Any, ...] | None:
    """The first row, its columns perhaps as PostgreSQL's texts of them; `None` if there is none."""
    known = _known(connection, sql)
    if known is None:
        return next(iter(rows(connection, sql, values)), None)
    with connection.wrap_database_errors:
        result = _at_once(connection.connection, known, sql, values)
    if not result.ntuples:
        return None
    found = (result.get_value(0, column) for column in range(result.nfields))
    return tuple(None if value is None else value.decode() for value in found)


def _known(connection: Any, sql: str) -> dict[str, bytes] | None:
    """What the session has prepared, if the statement may go to the server in one call of libpq.

    That is so outside a transaction, and takes a third of what the driver's cursor takes: it waits for the
    socket in ways that only many statements at once have use for.
    """
    from django.db.backends.postgresql.psycopg_any import is_psycopg3

    connection.ensure_connection()
    if not is_psycopg3 or connection.execute_wrappers or not _is_lasting(connection):
        return None
    session = connection.connection
    if not session.autocommit:
        return None
    known = _kept.get(session)
    if known is None:
        known = _kept[session] = {}
    return known if sql in known or len(known) < _MOST else None


def _by_cursor(connection: Any, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    from django.db.backends.postgresql.psycopg_any import is_psycopg3

    if connection.execute_wrappers or not is_psycopg3:
        with connection.cursor() as cursor:
            cursor.execute(sql, values)
            return cursor.fetchall()
    from psycopg import Cursor

    session = connection.connection
    lasting = _is_lasting(connection)
    if lasting and session.prepare_threshold is None:  # Django's way to say: never
        session.prepare_threshold = _PREPARE_OTHERS_AFTER
    with Cursor(session) as cursor:
        return cursor.execute(sql, values, prepare=lasting).fetchall()


def _is_lasting(connection: Any) -> bool:
    """Whether it stays one session: some poolers give each transaction another, with nothing prepared."""
    return not connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS")


def _at_once(session: Any, known: dict[str, bytes], sql: str, values: Sequence[Any]) -> Any:
    libpq = session.pgconn
    name = known.get(sql)
    if name is None:
        name = f"agency_{len(known)}".encode()
        _checked(libpq, libpq.prepare(name, _numbered(sql)))
        known[sql] = name
    return _checked(libpq, libpq.exec_prepared(name, [_text(value) for value in values]))


def _checked(libpq: Any, result: Any) -> Any:
    """The result of a statement that succeeded; else the error that the driver would raise."""
    if result.status in _SUCCEEDED:
        return result
    from psycopg import OperationalError, errors
    from psycopg.pq import ConnStatus

    error = errors.error_from_result(result)
    # Without a code it is libpq that speaks and not the server, which may be gone although libpq calls the
    # session good. Of what a session has lost, the next one will know nothing.
    is_gone = libpq.status != ConnStatus.OK or error.sqlstate is None
    if is_gone or isinstance(error, errors.InvalidSqlStatementName):
        raise OperationalError(result.get_error_message())
    raise error


def _text(value: Any) -> bytes | None:
    if value is None:
        return None
    text = str(value).encode()
    if b"\0" in text:
        raise ValueError("PostgreSQL takes no NUL in a text, and libpq would cut it there")
    return text


@cache
def _placed(sql: str) -> tuple[str, tuple[str, ...]]:
    """The statement with places for its names, and whose they are."""
    return _NAME.sub("%s", sql), tuple(_NAME.findall(sql))


@cache
def _numbered(sql: str) -> bytes:
    """The statement with libpq's placeholders for the driver's."""
    numbers = count(1)
    parts = (part.replace("%%", "%") for part in sql.split("%s"))
    return "".join([next(parts), *(f"${next(numbers)}{part}" for part in parts)]).encode()

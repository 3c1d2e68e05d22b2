"""The one clock: the database's. Leases, due times and deadlines never use a worker's wall clock.

`offset_seconds` exists for tests that must look into the future.
"""

from typing import Any

from django.db import connections
from django.db.models import DateTimeField, Func

offset_seconds: float = 0.0


def now_sql(vendor: str, plus: str | None = None) -> str:
    """SQL for the present moment; `plus` is a placeholder or number of seconds to add to it.

    `clock_timestamp()` and not `now()`: a transaction that waited for a lock must see the time go on.
    SQLite stores datetimes as text with microseconds, so its expression is padded to compare.
    """
    if vendor == "postgresql":
        seconds = f"{offset_seconds} + {plus}" if plus else f"{offset_seconds}"
        if not plus and not offset_seconds:
            return "clock_timestamp()"
        return f"(clock_timestamp() + make_interval(secs => ({seconds})::double precision))"
    seconds = f"{offset_seconds} + {plus}" if plus else f"{offset_seconds}"
    return f"strftime('%%Y-%%m-%%d %%H:%%M:%%f000', 'now', ({seconds}) || ' seconds')"


class Now(Func):
    """`now_sql` for the ORM: `filter(next_run_at__lte=Now())`, `update(finished_at=Now())`."""

    output_field = DateTimeField()

    def __init__(self, plus: float = 0.0) -> None:
        self.plus = plus
        super().__init__()

    def as_sql(self, compiler: Any, connection: Any, **extra: Any) -> tuple[str, list[Any]]:
        return now_sql(connection.vendor, repr(float(self.plus)) if self.plus else None), []


class NowOnce(Now):
    """`Now`, read once for a statement, so that an index can be searched by it."""

    def as_sql(self, compiler: Any, connection: Any, **extra: Any) -> tuple[str, list[Any]]:
        moment, params = super().as_sql(compiler, connection, **extra)
        return f"(SELECT {moment})", params


def database_now(using: str = "default") -> Any:
    """The database's present moment as an aware datetime."""
    from agency.models.execution import Execution

    connection = connections[using]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {now_sql(connection.vendor)}", [])
        value = cursor.fetchone()[0]
    if connection.vendor == "postgresql":
        return value
    field = Execution._meta.get_field("created_at")
    for convert in connection.ops.get_db_converters(field.get_col(Execution._meta.db_table)):
        value = convert(value, field, connection)
    return value

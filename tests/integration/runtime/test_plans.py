"""What runs every second reads an index, not the table, however many rows wait in it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from agency.mission import slots
from agency.models import Execution, Schedule, ScheduleSlot
from agency.models.clock import Now, database_now
from agency.runtime import lanes, sweep
from agency.runtime.claim import claim
from tests.integration.mission.scheduled import mission_of
from tests.integration.runtime.test_fair_claims import due

pytestmark = pytest.mark.django_db
TABLE = Execution._meta.db_table


@pytest.fixture
def crowded(agency_agent: Callable[..., Any]) -> Any:
    """Many rows that wait for later, with deadlines, and as many that have ended."""
    agent = agency_agent("fault-clerk")
    due(agent, 2000, ago=-600)
    Execution.objects.update(status="in_progress", started_at=Now(), deadline_at=Now(3600))
    ended = due(agent, 2000, ago=600)
    Execution.objects.filter(pk__in=[row.pk for row in ended]).update(
        status="finished", next_run_at=None, finished_at=Now()
    )
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {TABLE}")
    return agent


def test_no_statement_reads_the_whole_table(crowded: Any) -> None:
    due(crowded)
    said: list[tuple[str, Any]] = []

    def listen(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if TABLE in sql and sql.lstrip().startswith(("SELECT", "WITH", "UPDATE")):
            said.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(listen):
        for work in (
            sweep.recover,
            sweep.close,
            sweep.announce,
            lanes.look,
            lanes.running,
            lanes.walk,
            claim,
            slots.run_due,
        ):
            work()
    assert len(said) >= 9
    for sql, params in said:
        assert _table_scans(sql, params) == [], sql


def test_the_look_at_schedules_reads_none_of_those_that_are_not_due(
    agency_agent: Callable[..., Any],
) -> None:
    mission = mission_of(agency_agent("fault-clerk"))
    later = database_now() + timedelta(days=1)
    schedules = [Schedule(mission=mission, cron="0 9 * * *", next_slot_at=later) for _ in range(2000)]
    Schedule.objects.bulk_create(schedules)
    passed = [ScheduleSlot(schedule=one, slot_at=later, outcome="skipped") for one in schedules]
    ScheduleSlot.objects.bulk_create(passed)
    tables = (Schedule._meta.db_table, ScheduleSlot._meta.db_table)
    said: list[str] = []

    def listen(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        said.append(sql)
        return execute(sql, params, many, context)

    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"ANALYZE {table}")
    with connection.execute_wrapper(listen):
        assert slots.run_due() == 0
    assert len(said) == 1
    assert [line for table in tables for line in _table_scans(said[0], [], table)] == []


def _table_scans(sql: str, params: Any, table: str = TABLE) -> list[str]:
    explain = "EXPLAIN " if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN "
    with connection.cursor() as cursor:
        cursor.execute(explain + sql, params)
        plan = [str(row[-1]) for row in cursor.fetchall()]
    if connection.vendor == "postgresql":
        return [line for line in plan if f"Seq Scan on {table}" in line]
    whole = [line for line in plan if line.startswith("SCAN ") and "INDEX" not in line]
    return [line for line in whole if line.split()[1] in {table, "e", "r"}]

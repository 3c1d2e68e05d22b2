"""A dispatcher dies anywhere while it deals with a slot: the slot is dispatched once all the same."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from agency.enums import Overlap
from agency.execution import service
from agency.mission.slots import due_schedules, free_schedules, run_due
from agency.models import ConfiguredAgent, Execution, Mission, Schedule
from tests.faults.points.mortals import Mortals
from tests.faults.points.points import STATEMENT
from tests.faults.processes import eventually
from tests.integration.mission.scheduled import due_schedule, executions, make_due, mission_of, outcomes

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.e2e]


@pytest.fixture
def mission(clerk: ConfiguredAgent, bill: Any) -> Mission:
    return mission_of(clerk)


def is_dealt_with() -> bool:
    run_due()
    return not due_schedules().exists() and not free_schedules().exists()


def deaths(mortals: Mortals, prepare: Callable[[], Schedule], check: Callable[[Schedule], None]) -> int:
    """How many statements and commits a process can die before; `check` what the next one makes of each."""
    for nth in itertools.count(1):
        schedule = prepare()
        lived = mortals.do("schedule", STATEMENT, nth) == 0
        # PostgreSQL may need a moment to see that the dead one's connection is gone.
        eventually(is_dealt_with)
        check(schedule)
        if lived:
            return nth - 1
        schedule.delete()
        for execution in Execution.objects.filter(finished_at=None):
            service.request_cancel(execution)
    raise AssertionError("unreachable")


def test_before_any_one_of_its_statements(mortals: Mortals, mission: Mission) -> None:
    def check(schedule: Schedule) -> None:
        assert outcomes(schedule) == ["dispatched"]
        assert [one.status for one in brought_by(schedule)] == ["pending"]

    assert deaths(mortals, lambda: due_schedule(mission), check) > 8


def test_while_it_cancels_the_previous_one(mortals: Mortals, mission: Mission) -> None:
    def prepare() -> Schedule:
        schedule = due_schedule(mission, ago=2, overlap=Overlap.CANCEL_PREVIOUS)
        run_due()
        make_due(schedule)
        return schedule

    def check(schedule: Schedule) -> None:
        assert outcomes(schedule) == ["dispatched", "dispatched"]
        assert [one.status for one in brought_by(schedule)] == ["cancelled", "pending"]

    assert deaths(mortals, prepare, check) > 12


def test_while_it_dispatches_what_was_queued(mortals: Mortals, mission: Mission) -> None:
    def prepare() -> Schedule:
        schedule = due_schedule(mission, ago=2, overlap=Overlap.QUEUE)
        run_due()
        make_due(schedule)
        run_due()
        service.request_cancel(brought_by(schedule)[0])
        return schedule

    def check(schedule: Schedule) -> None:
        assert outcomes(schedule) == ["dispatched", "dispatched"]
        assert [one.status for one in brought_by(schedule)] == ["cancelled", "pending"]

    assert deaths(mortals, prepare, check) > 6


def brought_by(schedule: Schedule) -> list[Execution]:
    return [one for one in executions(schedule) if one.metadata["trigger"]["schedule"] == str(schedule.pk)]

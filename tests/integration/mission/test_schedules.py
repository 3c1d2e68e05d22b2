"""What people do with schedules, and what is refused."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from agency.errors import InvalidInput
from agency.mission import schedules
from agency.mission.cron import next_times
from agency.mission.schedules import create_schedule, update_schedule
from agency.mission.slots import run_due
from agency.models import ConfiguredAgent, Mission, Schedule
from agency.models.clock import Now, database_now
from tests.integration.mission.scheduled import due_schedule, executions, make_due, mission_of, outcomes

pytestmark = pytest.mark.django_db


@pytest.fixture
def mission(agency_agent: Callable[..., ConfiguredAgent]) -> Mission:
    return mission_of(agency_agent("clerk"))


def row(schedule: Schedule) -> Schedule:
    return Schedule.objects.get(pk=schedule.pk)


def test_a_new_schedule_waits_for_its_next_slot_by_the_clock_of_its_zone(mission: Mission) -> None:
    made = create_schedule(mission, cron="30 8 * * *", time_zone="America/New_York")
    expected = next_times("30 8 * * *", "America/New_York", database_now(), 1)[0]
    kept = row(made)
    assert (kept.next_slot_at, kept.overlap, kept.catch_up) == (expected, "skip", "run_once")
    assert schedules.upcoming(kept)[0] == expected
    assert len(schedules.upcoming(kept)) == 5


def test_a_schedule_that_begins_paused_has_no_slot_but_shows_its_times(mission: Mission) -> None:
    made = create_schedule(mission, cron="* * * * *", is_paused=True)
    assert row(made).next_slot_at is None
    assert len(schedules.upcoming(made, 3)) == 3


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("cron", "0 0 31 2 *"),
        ("cron", "* * * * * *"),
        ("time_zone", "Europe/Berln"),
        ("overlap", "sometimes"),
        ("catch_up", "all"),
    ],
)
def test_what_does_not_fit_names_its_field_and_changes_nothing(
    mission: Mission, field: str, given: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        create_schedule(mission, **({"cron": "0 9 * * *"} | {field: given}))
    assert refused.value.errors[0]["path"] == field
    assert not Schedule.objects.exists()

    before = row(create_schedule(mission, cron="0 9 * * *"))
    with pytest.raises(InvalidInput, match=field):
        update_schedule(before, **{field: given})
    after = row(before)
    assert (after.cron, after.next_slot_at) == (before.cron, before.next_slot_at)


def test_a_removed_mission_gets_no_schedule_and_none_is_resumed(mission: Mission) -> None:
    paused = create_schedule(mission, cron="0 9 * * *", is_paused=True)
    Mission.objects.update(archived_at=Now())
    mission.refresh_from_db()
    with pytest.raises(InvalidInput, match="mission: 'Look after the shelves' was removed"):
        create_schedule(mission, cron="0 9 * * *")
    with pytest.raises(InvalidInput, match="was removed"):
        schedules.resume(paused)


def test_another_cron_or_zone_plans_anew_and_another_overlap_does_not(mission: Mission) -> None:
    made = create_schedule(mission, cron="0 9 * * *")
    changed = update_schedule(made, overlap="queue", catch_up="skip")
    assert (row(made).overlap, row(made).catch_up) == ("queue", "skip")
    assert changed.next_slot_at == made.next_slot_at
    moved = update_schedule(made, time_zone="Pacific/Kiritimati")
    assert row(made).next_slot_at == moved.next_slot_at == schedules.upcoming(moved)[0]
    assert moved.next_slot_at != made.next_slot_at
    assert update_schedule(made, cron="* * * * *").next_slot_at <= database_now() + timedelta(minutes=1)


def test_a_changed_plan_drops_the_slot_that_nobody_has_dispatched_yet(mission: Mission) -> None:
    schedule = due_schedule(mission)
    update_schedule(schedule, cron="0 9 * * *")
    assert run_due() == 0
    assert executions(schedule) == []


def test_a_pause_holds_all_slots_and_what_passed_in_it_is_not_caught_up(mission: Mission) -> None:
    schedule = due_schedule(mission)
    paused = schedules.pause(schedule)
    assert (paused.is_paused, row(schedule).next_slot_at) == (True, None)
    assert run_due() == 0
    assert update_schedule(schedule, cron="0 9 * * *").next_slot_at is None
    resumed = schedules.resume(schedule)
    assert (resumed.is_paused, row(schedule).next_slot_at) == (False, schedules.upcoming(resumed)[0])
    assert run_due() == 0


def test_to_pause_and_to_resume_again_changes_nothing(mission: Mission) -> None:
    schedule = due_schedule(mission)
    due = schedules.resume(schedule).next_slot_at
    assert due == row(schedule).next_slot_at < database_now()
    assert schedules.pause(schedule).next_slot_at is schedules.pause(schedule).next_slot_at is None


def test_a_pause_skips_what_is_queued(mission: Mission) -> None:
    schedule = due_schedule(mission, overlap="queue")
    run_due()
    make_due(schedule)
    run_due()
    assert outcomes(schedule) == ["dispatched", "queued"]
    schedules.pause(schedule)
    assert outcomes(schedule) == ["dispatched", "skipped"]


def test_executions_outlive_their_schedule(mission: Mission) -> None:
    schedule = due_schedule(mission)
    run_due()
    schedules.delete(schedule)
    left: list[Any] = executions(schedule)
    assert [one.status for one in left] == ["pending"]
    with pytest.raises(Schedule.DoesNotExist):
        schedules.pause(schedule)

"""Real processes and schedules: each slot is dispatched once and in time, whoever dies, and runs."""

import os
from collections.abc import Callable
from typing import Any

import pytest

from agency.models import ConfiguredAgent, Execution, Schedule, ScheduleSlot
from tests.faults.processes import Processes, eventually, kill
from tests.integration.mission.scheduled import due_schedule, executions, mission_of, outcomes

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.e2e]
SLOTS = 40
SECONDS = 4.0


def ready(home: Processes, start: Callable[..., Any], *arguments: str) -> Any:
    """A process that has said that it is at work."""
    reading, writing = os.pipe()
    process = start(*arguments, heard=writing)
    os.close(writing)
    assert os.read(reading, 1), home.log()
    os.close(reading)
    return process


def test_three_dispatchers_of_which_two_are_killed_dispatch_each_slot_once_and_in_time(
    clerk: ConfiguredAgent, bill: Any, processes: Callable[..., Processes]
) -> None:
    home = processes()
    dispatchers = [ready(home, home.command, "agency_dispatcher") for _ in range(3)]
    mission = mission_of(clerk)
    for n in range(SLOTS):
        due_schedule(mission, ago=-1.0 - n * SECONDS / SLOTS)
    for victim, after in ((0, SLOTS // 4), (1, SLOTS // 2)):
        eventually(lambda after=after: Execution.objects.count() >= after, log=home.log)
        kill(dispatchers[victim])
    eventually(lambda: not Schedule.objects.filter(slots=None).exists(), log=home.log)

    assert {outcomes(schedule) == ["dispatched"] for schedule in Schedule.objects.all()} == {True}
    assert Execution.objects.count() == ScheduleSlot.objects.count() == SLOTS
    late = sorted(
        (slot.execution.created_at - slot.slot_at).total_seconds()
        for slot in ScheduleSlot.objects.select_related("execution")
    )
    # A claim that must run out first would take a minute.
    assert late[int(SLOTS * 0.95)] < 20.0, late


def test_a_polling_worker_alone_dispatches_what_is_due_and_runs_it(
    clerk: ConfiguredAgent, bill: Any, processes: Callable[..., Processes]
) -> None:
    home = processes()
    ready(home, home.command, "agency_worker")
    schedule = due_schedule(mission_of(clerk, prompt="done"), ago=-1)
    eventually(lambda: [one.status for one in executions(schedule)] == ["finished"], log=home.log)


def test_a_dispatcher_wakes_a_celery_worker_for_what_a_schedule_has_brought(
    clerk: ConfiguredAgent, bill: Any, processes: Callable[..., Processes], broker_url: str
) -> None:
    home = processes(broker_url, POLL_SECONDS=3600)
    ready(home, home.celery_worker)
    ready(home, home.command, "agency_dispatcher")
    schedule = due_schedule(mission_of(clerk, prompt="done"), ago=-1)
    eventually(lambda: [one.status for one in executions(schedule)] == ["finished"], log=home.log)

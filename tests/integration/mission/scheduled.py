"""Missions with schedules, for tests of what becomes of their slots."""

from datetime import datetime, timedelta
from typing import Any

from agency.mission.schedules import create_schedule
from agency.models import ConfiguredAgent, Execution, Mission, Schedule
from agency.models.clock import database_now

RARELY = "0 0 29 2 *"
"""So that no other slot comes in between while a test runs."""


def mission_of(agent: ConfiguredAgent, **columns: Any) -> Mission:
    values = {"name": "Look after the shelves", "prompt": "Look after the shelves."} | columns
    return Mission.objects.create(owner=agent.owner, agent=agent, **values)


def due_schedule(mission: Mission, *, ago: float = 1.0, cron: str = RARELY, **options: Any) -> Schedule:
    """A schedule whose next slot came `ago` seconds ago."""
    schedule = create_schedule(mission, cron=cron, **options)
    make_due(schedule, ago)
    return schedule


def make_due(schedule: Schedule, ago: float = 1.0) -> datetime:
    slot = database_now() - timedelta(seconds=ago)
    Schedule.objects.filter(pk=schedule.pk).update(next_slot_at=slot)
    return slot


def outcomes(schedule: Schedule) -> list[str]:
    """What became of the slots so far, in their order."""
    return list(schedule.slots.order_by("slot_at").values_list("outcome", flat=True))


def executions(schedule: Schedule) -> list[Execution]:
    """The executions that the schedule has brought, in their slots' order."""
    return list(Execution.objects.filter(mission=schedule.mission).order_by("schedule_slot__slot_at"))

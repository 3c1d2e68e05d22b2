"""What people do with schedules: make, change, pause, resume, delete. What becomes of slots: `slots`.

Each is one transaction that holds the schedule's row, so that a dispatcher sees it before or after.
"""

from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import NoReturn

from django.db import transaction

from agency.enums import CatchUp, Overlap, SlotOutcome
from agency.errors import InvalidInput
from agency.execution.claims import database
from agency.mission import cron as crons
from agency.mission.missions import locked_to_dispatch
from agency.models import Mission, Schedule
from agency.models.clock import database_now

COLUMNS = ("cron", "time_zone", "overlap", "catch_up", "is_paused", "next_slot_at", "updated_at")


def create_schedule(
    mission: Mission,
    *,
    cron: str,
    time_zone: str = "UTC",
    overlap: str = Overlap.SKIP,
    catch_up: str = CatchUp.RUN_ONCE,
    is_paused: bool = False,
) -> Schedule:
    """Have `mission` dispatched at the times of `cron` as the clock of `time_zone` shows them.

    `InvalidInput` names the field that does not fit.
    """
    schedule = Schedule(mission=mission, is_paused=is_paused)
    _set(schedule, cron, time_zone, overlap, catch_up)
    _plan(schedule)
    with transaction.atomic(using=database()):
        if locked_to_dispatch(mission) is None:
            _refuse_removed(mission)
        schedule.save(using=database(), force_insert=True)
    return schedule


def update_schedule(
    schedule: Schedule,
    *,
    cron: str | None = None,
    time_zone: str | None = None,
    overlap: str | None = None,
    catch_up: str | None = None,
) -> Schedule:
    """Change what is given; returns the row as it is then. What has been dispatched goes on as it is.

    With another `cron` or `time_zone` the next slot is the first from now on: one of the old plan that was
    not dispatched yet is dropped.
    """
    with transaction.atomic(using=database()):
        row = _locked(schedule)
        before = (row.cron, row.time_zone)
        _set(
            row,
            row.cron if cron is None else cron,
            row.time_zone if time_zone is None else time_zone,
            row.overlap if overlap is None else overlap,
            row.catch_up if catch_up is None else catch_up,
        )
        if before != (row.cron, row.time_zone):
            _plan(row)
        row.save(using=database(), update_fields=COLUMNS)
    return row


def pause(schedule: Schedule) -> Schedule:
    """No slot until `resume`; one that is queued is skipped. Executions that run go on."""
    with transaction.atomic(using=database()):
        row = _locked(schedule)
        row.is_paused = True
        _plan(row)
        row.slots.filter(outcome=SlotOutcome.QUEUED.value).update(outcome=SlotOutcome.SKIPPED.value)
        row.save(using=database(), update_fields=COLUMNS)
    return row


def resume(schedule: Schedule) -> Schedule:
    """Go on with the first slot from now on: those that passed during the pause are not caught up."""
    with transaction.atomic(using=database()):
        row = _locked(schedule)
        if row.mission.archived_at is not None:
            _refuse_removed(row.mission)
        if row.is_paused:
            row.is_paused = False
            _plan(row)
            row.save(using=database(), update_fields=COLUMNS)
    return row


def delete(schedule: Schedule) -> None:
    """Remove the schedule and its slots; its executions stay and go on."""
    with transaction.atomic(using=database()):
        # Held, so that no dispatcher adds a slot between the deletion of the slots and that of the row.
        for row in Schedule.objects.using(database()).select_for_update().filter(pk=schedule.pk):
            row.delete(using=database())


def upcoming(schedule: Schedule, n: int = 5) -> list[datetime]:
    """The next `n` times of the schedule from now on, in UTC; of a paused one, those it would have."""
    cron = crons.parse(schedule.cron, schedule.time_zone)
    return list(islice(cron.times(database_now(database())), n))


def _locked(schedule: Schedule) -> Schedule:
    """The row as it is; `Schedule.DoesNotExist` if it was deleted meanwhile."""
    return Schedule.objects.using(database()).select_for_update().get(pk=schedule.pk)


def _set(row: Schedule, cron: str, time_zone: str, overlap: str, catch_up: str) -> None:
    crons.parse(cron, time_zone)
    row.cron, row.time_zone = " ".join(cron.split()), time_zone
    row.overlap = _choice("overlap", overlap, Overlap)
    row.catch_up = _choice("catch_up", catch_up, CatchUp)


def _plan(row: Schedule) -> None:
    row.next_slot_at = None if row.is_paused else upcoming(row, 1)[0]


def _choice(path: str, given: str, words: type[StrEnum]) -> str:
    known = [word.value for word in words]
    if given not in known:
        _refuse(path, f"{given!r} is none of {', '.join(known)}")
    return str(given)


def _refuse_removed(mission: Mission) -> NoReturn:
    _refuse("mission", f"{mission.name!r} was removed; make the schedule for another mission")


def _refuse(path: str, message: str) -> NoReturn:
    raise InvalidInput(f"{path}: {message}", [{"path": path, "message": message}])

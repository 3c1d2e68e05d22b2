"""What becomes of a schedule's slots: each is dispatched once, or skipped, whoever looks and however often.

Whoever holds the schedule's row decides: one transaction writes the slot, its execution and the next slot's
time, so that a process that dies has done all or nothing.
"""

import uuid
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import DatabaseError, Error, OperationalError, connections, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from agency.enums import CatchUp, Overlap, SlotOutcome
from agency.errors import AgencyError, InvalidInput
from agency.execution.claims import database
from agency.execution.service import request_cancel
from agency.mission import cron as crons
from agency.mission import service
from agency.models import Execution, Schedule, ScheduleSlot
from agency.models.clock import NowOnce, database_now, now_sql
from agency.redaction import safe_logger

log = safe_logger("agency.mission")
GRACE = timedelta(seconds=60)
"""A slot that is no older is on time, also where missed slots are skipped."""
REMEMBERED = 100
"""How many of the slots that passed while nobody looked get a row, and how many stay however old they are."""
FORGOTTEN = 500
"""So many old slots at most go with each new one, so that no transaction is long."""

_NEXT = f"SELECT MIN(next_slot_at) FROM {Schedule._meta.db_table} WHERE next_slot_at IS NOT NULL"
_QUEUED = f"SELECT 1 FROM {ScheduleSlot._meta.db_table} WHERE outcome = '{SlotOutcome.QUEUED}'"
_WORK = f"SELECT 1 WHERE ({_NEXT}) <= {{now}} UNION ALL {_QUEUED} LIMIT 1"


class _NotFree(Exception):
    """Another transaction holds what the slot would cancel, and waiting for it could end in a deadlock."""

    def __init__(self, schedule: uuid.UUID) -> None:
        super().__init__()
        self.schedule = schedule


def run_due(limit: int = 100, *, keep_seconds: float | None = None) -> int:
    """Deal with at most `limit` schedules that have something to dispatch; returns how many there were.

    Each forgets on the way its slots that are older than `keep_seconds`, but for the last hundred of them.
    Any number of processes may do so at once: they pass by what another one holds. A schedule that cannot
    be dealt with does not stop the others.
    """
    if not _has_work():
        return 0
    done = _each(free_schedules(), _release, limit)
    return done + _each(due_schedules(), partial(_run, keep_seconds=keep_seconds), limit - done)


def due_schedules() -> QuerySet[Schedule]:
    """Schedules whose next slot has come, the oldest first."""
    rows = Schedule.objects.using(database()).filter(next_slot_at__lte=NowOnce())
    return rows.order_by("next_slot_at")


def free_schedules() -> QuerySet[Schedule]:
    """Schedules with a queued slot and no execution that still runs."""
    rows = Schedule.objects.using(database()).filter(slots__outcome=SlotOutcome.QUEUED.value)
    return rows.exclude(Exists(_running(OuterRef("mission"), OuterRef("pk"))))


def _has_work() -> bool:
    """The look of each second, so it is one statement along two small indexes."""
    connection = connections[database()]
    with connection.cursor() as cursor:
        cursor.execute(_WORK.format(now=now_sql(connection.vendor)), [])
        return cursor.fetchone() is not None


def _each(rows: QuerySet[Schedule], work: Callable[[Schedule], None], limit: int) -> int:
    # Looking first spares SQLite the write lock of a transaction that finds nothing.
    if not rows.values_list("pk")[:1]:
        return 0
    failed: list[uuid.UUID] = []
    for n in range(limit):
        if not _one(rows.exclude(pk__in=failed), work, failed):
            return n
    return limit


def _one(rows: QuerySet[Schedule], work: Callable[[Schedule], None], failed: list[uuid.UUID]) -> bool:
    # The mission too, so that it is not removed meanwhile; whatever is not free is left for the next round.
    free = rows.select_for_update(skip_locked=True, of=("self", "mission"), no_key=True)
    schedule = None
    try:
        with transaction.atomic(using=database()):
            schedule = free.select_related("mission__owner", "mission__agent").first()
            if schedule is None:
                return False
            work(schedule)
    except _NotFree as later:
        failed.append(later.schedule)
    except OperationalError:
        raise
    except DatabaseError:
        if schedule is None:
            raise
        log.exception("schedule %s could not be dealt with and stays due", schedule.pk)
        failed.append(schedule.pk)
    return True


def _run(schedule: Schedule, keep_seconds: float | None) -> None:
    """Deal with all slots up to now: the newest one counts, older ones have passed unseen."""
    now = database_now(database())
    first = schedule.next_slot_at or now
    try:
        cron = crons.parse(schedule.cron, schedule.time_zone)
    except InvalidInput as exc:
        log.error("schedule %s is paused, this machine cannot read it: %s", schedule.pk, exc)
        _update(schedule, is_paused=True, next_slot_at=None)
        return
    *missed, slot = [first, *cron.newest(first, now, REMEMBERED)]
    _update(schedule, next_slot_at=next(cron.times(now), None))
    _release(schedule)
    _skip(schedule, missed)
    if not schedule.slots.filter(slot_at=slot).exists():
        _decide(schedule, slot, now)
    if keep_seconds is not None:
        _forget(schedule, now - timedelta(seconds=keep_seconds))


def _forget(schedule: Schedule, before: datetime) -> None:
    """Delete old slots that nothing depends on any more: neither one that is queued nor what still runs."""
    over = Q(execution__isnull=True) | Q(execution__finished_at__isnull=False)
    old = schedule.slots.filter(over, slot_at__lt=before).exclude(outcome=SlotOutcome.QUEUED.value)
    ids = old.order_by("-slot_at").values_list("pk", flat=True)[REMEMBERED : REMEMBERED + FORGOTTEN]
    if found := list(ids):
        ScheduleSlot.objects.using(database()).filter(pk__in=found).delete()


def _decide(schedule: Schedule, slot: datetime, now: datetime) -> None:
    before = list(_running(schedule.mission_id, schedule.pk))
    overlap = Overlap(schedule.overlap) if before else None
    if schedule.catch_up == CatchUp.SKIP and now - slot > GRACE:
        _say(schedule, slot, "skipped, since nobody was there in time")
        _skip(schedule, [slot])
    elif overlap is Overlap.SKIP:
        _say(schedule, slot, "skipped, since execution %s still runs", before[0].pk)
        _skip(schedule, [slot])
    elif overlap is Overlap.QUEUE:
        _queue(schedule, slot)
    else:
        _hold(schedule, before)
        if _dispatch(ScheduleSlot(schedule=schedule, slot_at=slot)):
            for execution in before:
                request_cancel(execution)


def _hold(schedule: Schedule, executions: list[Execution]) -> None:
    """Lock what is about to be cancelled; where that is not free, the slot is left for the next round."""
    rows = Execution.objects.using(database()).filter(pk__in=[one.pk for one in executions])
    if executions and len(rows.select_for_update(skip_locked=True)) < len(executions):
        raise _NotFree(schedule.pk)


def _queue(schedule: Schedule, slot: datetime) -> None:
    if schedule.slots.filter(outcome=SlotOutcome.QUEUED.value).exists():
        _say(schedule, slot, "skipped, since another one is queued")
        _skip(schedule, [slot])
    else:
        ScheduleSlot.objects.using(database()).create(
            schedule=schedule, slot_at=slot, outcome=SlotOutcome.QUEUED.value
        )


def _release(schedule: Schedule) -> None:
    """Dispatch the slot that is queued, if there is one and nothing runs any more."""
    slot = schedule.slots.filter(outcome=SlotOutcome.QUEUED.value).order_by("slot_at").first()
    if slot is not None and not _running(schedule.mission_id, schedule.pk).exists():
        _dispatch(slot)


def _dispatch(slot: ScheduleSlot) -> bool:
    """Dispatch the mission for `slot` and store what became of it; `False` if it cannot be dispatched now."""
    schedule = slot.schedule
    trigger = {"by": "schedule", "schedule": str(schedule.pk), "slot": slot.slot_at.isoformat()}
    slot.outcome = SlotOutcome.SKIPPED.value
    try:
        if not schedule.mission.owner.is_active:
            raise InvalidInput("the account of the mission's owner is closed")
        with transaction.atomic(using=database()):
            slot.execution = service.dispatch(schedule.mission, trigger=trigger).execution
        slot.outcome = SlotOutcome.DISPATCHED.value
        _say(schedule, slot.slot_at, "dispatched as execution %s", slot.execution.pk)
    except Error:
        raise
    except AgencyError as exc:
        _say(schedule, slot.slot_at, "skipped, since the mission cannot run: %s", exc)
    except Exception:  # whatever is wrong with one mission, the other schedules must go on
        log.exception("schedule %s: slot %s skipped", schedule.pk, slot.slot_at.isoformat())
    slot.save(using=database())
    return slot.execution is not None


def _skip(schedule: Schedule, slots: Iterable[datetime]) -> None:
    rows = [
        ScheduleSlot(schedule=schedule, slot_at=slot, outcome=SlotOutcome.SKIPPED.value) for slot in slots
    ]
    ScheduleSlot.objects.using(database()).bulk_create(rows, ignore_conflicts=True)


def _running(mission: Any, schedule: Any) -> QuerySet[Execution]:
    """What the schedule has brought and has not ended: few rows, which the mission's open ones lead to."""
    rows = Execution.objects.using(database()).filter(mission=mission, finished_at__isnull=True)
    return rows.filter(schedule_slot__schedule=schedule).order_by("created_at")


def _update(schedule: Schedule, **values: Any) -> None:
    Schedule.objects.using(database()).filter(pk=schedule.pk).update(**values)


def _say(schedule: Schedule, slot: datetime, what: str, *more: object) -> None:
    log.info(f"schedule %s: slot %s {what}", schedule.pk, slot.isoformat(), *more)

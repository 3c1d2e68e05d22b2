"""Puts right what died: expired or orphaned claims, cancels and deadlines of rows that nobody runs, and
ends that nobody was told of. Dispatches what schedules have due, in the same turn.

Safe to run in any number of processes at once: each row is re-checked in the statement that changes
it. A row that cannot be put right is logged and does not stop the others.
"""

import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from django.db import DatabaseError, InterfaceError, OperationalError
from django.db.models import Q, QuerySet

from agency.enums import ExecutionStatus
from agency.execution import overdue, store
from agency.execution.claims import database
from agency.execution.failure import ExecutionFailureCode
from agency.execution.signals import execution_finished
from agency.human import requests
from agency.mission import slots
from agency.models import Execution, HumanRequest
from agency.models.clock import Now
from agency.redaction import safe_logger
from agency.runtime import conf, process
from agency.runtime.beat import beat

R = TypeVar("R", Execution, HumanRequest)
log = safe_logger("agency.runtime")
BATCH = 100
RECOVER_SECONDS = 1.0
CLOSE_SECONDS = 5.0

CRASH_LOOP = (
    "The worker that ran it died {n} times in a row; it was given up so that it takes no more workers along."
)
LATE = "The execution ran out of its time."


class Sweeper:
    """Sweeps at its own pace, however often it gets its turn."""

    def __init__(self) -> None:
        self._recover_at = self._close_at = 0.0

    def turn(self) -> None:
        now = time.monotonic()
        if now >= self._recover_at:
            self._recover_at = now + RECOVER_SECONDS
            recover()
            slots.run_due(keep_seconds=conf.current().SLOT_RETENTION_SECONDS)
        if now >= self._close_at:
            self._close_at = now + CLOSE_SECONDS
            close()
            announce()


def recover() -> None:
    """Make rows due whose runner is gone. Cheap (one index): may run every second."""
    _each("lease over", _claimed().filter(lease_until__lt=Now())[:BATCH], _make_due)
    _each("runner gone", _orphans(), _make_due)


def close() -> None:
    """End rows that nobody will run again: cancelled, out of time, or taking their workers along.

    Each rule looks along an index of its own, and each ending is guarded by its rule.
    """
    _each("cancelled", _nobodys(_asked(), "cancel_requested_at"), _cancel)
    _each("out of time", _nobodys(_late(), "deadline_at"), _fail_late)
    _each("given up", _nobodys(_capped(), "created_at"), _give_up)
    warning = conf.current().REQUEST_WARNING_SECONDS
    _each("request expired", requests.expired()[:BATCH], lambda row: overdue.expire(row.pk))
    _each("request about to expire", requests.expiring(warning)[:BATCH], lambda row: overdue.warn(row.pk))


def announce() -> None:
    """Tell listeners of ends whose teller has died."""
    if execution_finished.has_listeners(Execution):
        ended = Execution.objects.using(database()).filter(announce_at__lt=Now()).order_by("announce_at")
        _each("announced again", ended[:BATCH], lambda row: store.announce_again(row.pk))


def _each(rule: str, rows: Iterable[R], change: Callable[[R], bool]) -> None:
    for row in rows:
        execution_id = row.pk if isinstance(row, Execution) else row.execution_id
        try:
            if change(row):
                log.info("execution %s: %s", execution_id, rule, extra={"execution_id": str(execution_id)})
        except (OperationalError, InterfaceError):
            raise
        except DatabaseError:
            log.exception("execution %s could not be swept (%s)", execution_id, rule)


def _nobodys(rule: Q, order: str) -> QuerySet[Execution]:
    """Rows of a rule that have not ended and that nobody runs."""
    nobody = Q(claim_id__isnull=True) | Q(lease_until__lt=Now())
    rows = Execution.objects.using(database()).filter(nobody & rule, finished_at__isnull=True)
    return rows.order_by(order)[:BATCH]


def _claimed() -> QuerySet[Execution]:
    return Execution.objects.using(database()).filter(claim_id__isnull=False).order_by("lease_until")


def _orphans() -> list[Execution]:
    """Claims that certainly nobody runs and that have missed a beat, so that a stalled database is no death.

    Their owner is dead, or it is this process and it does not know them: the answer to the claim's COMMIT
    was lost on the way.
    """
    settings = conf.current()
    fresh = settings.LEASE_SECONDS - 1.5 * settings.BEAT_SECONDS
    silent = _claimed().filter(lease_until__lt=Now(fresh))
    # By owner, of whom there are few: claims that nobody here can judge must not hide the others.
    owners = silent.order_by().values_list("claim_owner", flat=True).distinct()
    dead = [owner for owner in owners if process.is_dead(owner)]
    unknown = Q(claim_owner__startswith=process.name()) & ~Q(claim_id__in=beat().claims())
    gone = Q(claim_owner__in=dead) | unknown
    return list(silent.filter(gone)[:BATCH]) if owners else []


def _asked() -> Q:
    return Q(cancel_requested_at__isnull=False)


def _capped() -> Q:
    return Q(claim_count__gte=conf.current().CLAIM_CAP)


def _late() -> Q:
    """Deadlines stand still while a person is asked."""
    return Q(deadline_at__lt=Now()) & ~Q(status=ExecutionStatus.INTERRUPTED.value)


def _cancel(row: Execution) -> bool:
    return store.close_cancelled(row.pk, wait=False)


def _fail_late(row: Execution) -> bool:
    return store.close_failed(row.pk, _late(), ExecutionFailureCode.DEADLINE_EXCEEDED, LATE)


def _give_up(row: Execution) -> bool:
    summary = CRASH_LOOP.format(n=row.claim_count)
    return store.close_failed(row.pk, _capped(), ExecutionFailureCode.CRASH_LOOP, summary)


def _make_due(row: Execution) -> bool:
    return store.make_due(row)

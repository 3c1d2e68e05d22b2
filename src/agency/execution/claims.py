"""What a process holds of an execution while it runs it, and how its writes stay safe.

Every write is guarded by the random `claim_id`: a process that lost its claim finds no row and stops.
A COMMIT whose outcome is unknown is settled by looking at what is there.
"""

import re
import time
import uuid
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import IntegrityError, InterfaceError, OperationalError, connections, router, transaction
from django.db.models import QuerySet

from agency.enums import ExecutionStatus, Wakeup
from agency.errors import StaleExecution
from agency.models import Event, Execution, Message
from agency.redaction import safe_logger

# How PostgreSQL and SQLite name what refuses a second event, or message of one, with one number.
_NUMBERED = "|".join(model._meta.db_table for model in (Event, Message))
_NUMBER_TAKEN = re.compile(rf"({_NUMBERED})(_seq_once|\.seq)\b")
T = TypeVar("T")
log = safe_logger("agency.execution")

PAUSES = (0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0)
"""Seconds between tries to write while the database is away: in all less than a lease."""


@dataclass(slots=True)
class Claim:
    """The right to run an execution. `iteration` is the one being run and rises when it is committed.

    `fence` counts the claims of the row, `deadline` (of the execution) and `attempt_deadline` are
    `time.monotonic()` values or `None`. One that is not `is_gated` was taken before its time, and goes
    through a shut gate too. One that `is_fresh` begins its iteration, so nothing of it is on record. One
    that `is_waiting` is to look whether the wait of a mission is over; one that `has_written` has added to
    the journal.
    """

    execution_id: str
    claim_id: uuid.UUID
    fence: int
    owner: str
    iteration: int
    generation: int = 1
    deadline: float | None = None
    attempt_deadline: float | None = None
    is_gated: bool = True
    is_mission: bool = False
    is_fresh: bool = False
    is_waiting: bool = False
    has_written: bool = False

    @property
    def wakeup(self) -> Wakeup:
        """What its execution is due for when it is given back."""
        if not self.is_mission:
            return Wakeup.RUN_EXECUTION
        return Wakeup.START_MISSION if self.iteration == 1 else Wakeup.RUN_LOOP_ITERATION

    def __str__(self) -> str:
        return f"execution {self.execution_id} (claim {self.fence})"


def database() -> str:
    """The alias of the database that holds the executions."""
    return router.db_for_write(Execution)


def uuid_value(connection: Any, value: str | uuid.UUID) -> Any:
    """A UUID as raw SQL on this database wants it."""
    return Execution._meta.pk.get_db_prep_value(value, connection, prepared=False)


def owned(claim: Claim) -> QuerySet[Execution]:
    """The claim's row, as long as it is the claim's."""
    return Execution.objects.using(database()).filter(
        pk=claim.execution_id, claim_id=claim.claim_id, status=ExecutionStatus.IN_PROGRESS.value
    )


def locked(rows: QuerySet[Execution], what: str) -> Execution:
    """The one row of `rows`, locked to the end of the transaction; `StaleExecution` if there is none."""
    row = rows.select_for_update().first()
    if row is None:
        raise StaleExecution(f"{what} is no longer what it was: another process went on with it")
    return row


def lost_number(refused: IntegrityError) -> bool:
    """Whether a write was refused since another was first to take the number of its event."""
    return _NUMBER_TAKEN.search(str(refused).partition("\n")[0]) is not None


def settled(write: Callable[[], T], find: Callable[[], T | None], *, single: bool = False) -> T:
    """The result of `write`, run in one transaction, once; a `single` write is a transaction by itself.

    When the connection dies it may be unknown whether the COMMIT arrived: `find` looks for what `write`
    would have left and returns it; if nothing is there, `write` runs again. So it is when somebody else has
    taken the number of an event, which may be this write, come late from a connection that had died. Inside a
    transaction of the caller there is nothing to settle.
    """
    alias = database()
    if connections[alias].in_atomic_block:
        with transaction.atomic(using=alias):
            return write()
    failure: Exception | None = None
    for pause in (*PAUSES, None):
        try:
            found = find() if failure is not None else None
            if found is not None:
                return found
            # In a transaction the writes here lock the row before they look for a number: no other takes it.
            alone = single and not isinstance(failure, IntegrityError)
            with nullcontext() if alone else transaction.atomic(using=alias):
                return write()
        except IntegrityError as exc:
            failure = exc
            if pause is None or not lost_number(exc):
                raise
        except (OperationalError, InterfaceError) as exc:
            failure = exc
            connections[alias].close()
            if pause is None:
                raise
            log.warning("the database did not take a write, trying again in %s s: %s", pause, exc)
            time.sleep(pause)
    raise AssertionError("unreachable: the last try returns or raises")

"""Whether a run must stop, and why: claim lost, cancel asked, time over, worker stopping.

A run asks before each model and tool call; calls in flight poll. The beat tells, see `beat`.
"""

import time
from enum import StrEnum

from django.db import connections

from agency.enums import ExecutionStatus
from agency.errors import ConfigurationError, RunCancelled, RunReleased
from agency.execution.claims import Claim, database
from agency.models import Execution


class StopReason(StrEnum):
    LOST = "claim lost"
    CANCELLED = "cancel asked"
    DEADLINE = "deadline passed"
    DRAIN = "worker stops"


class Watch:
    """The stop flag of one claim. The first reason stands, but a lost claim overrules every other.

    `lease` is in seconds. When no beat has renewed the claim for nearly that long, the watch itself
    counts the claim as lost: the process must stop before another one may begin.
    """

    def __init__(self, claim: Claim, lease: float) -> None:
        self.claim = claim
        self._lease = lease
        self._renewed = time.monotonic()
        self._reason: StopReason | None = None
        self._abort_at = 0.0
        self.abandoned = False
        """Whether the process has let the claim go, since the run did not leave when told."""

    @property
    def reason(self) -> StopReason | None:
        if time.monotonic() > self._renewed + self._lease * 0.9:
            return StopReason.LOST
        if self._reason is None and self._is_late():
            return StopReason.DEADLINE
        return self._reason

    def renew(self, asked_at: float) -> None:
        """The claim was ours at `asked_at` (`time.monotonic()`)."""
        self._renewed = max(self._renewed, asked_at)

    def stop(self, reason: StopReason, grace: float = 0.0) -> None:
        """Ask the run to stop before its next call; a call in flight has `grace` seconds to end."""
        if self._reason is None or reason == StopReason.LOST:
            told = self._reason is not None
            self._reason = reason
            self._abort_at = min(self._abort_at, time.monotonic()) if told else time.monotonic() + grace

    def checkpoint(self) -> None:
        """Called before each model and tool call: leave the run if it must stop.

        A transaction that is open now would stay open for as long as the call takes, with its locks.
        """
        self._leave_if_stopped()
        if connections[database()].in_atomic_block:
            raise ConfigurationError(
                "a model or tool was called inside a database transaction; "
                "end the transaction.atomic() block before conversation.ask()"
            )

    def _leave_if_stopped(self) -> None:
        reason = self.reason
        if reason == StopReason.DRAIN:
            raise RunReleased(reason.value)
        if reason is not None:
            raise RunCancelled(reason.value)

    def is_stuck(self, patience: float) -> bool:
        """Whether the run has not left `patience` seconds after its calls in flight should have ended.

        Of a worker that stops this is not asked: it ends anyway, see `Beat.give_back`.
        """
        if self._reason is None and (reason := self.reason) is not None:
            self.stop(reason)
        told = self._reason not in {None, StopReason.DRAIN}
        return told and time.monotonic() > self._abort_at + patience

    def is_aborted(self) -> bool:
        """Whether a call in flight should give up now."""
        return self.reason is not None and time.monotonic() >= self._abort_at

    def is_over(self) -> bool:
        """Of a run that is too late: whether the whole execution's time is over, and not only the attempt's.

        The row may say so before this process's clock does.
        """
        return _has_passed(self.claim.deadline) or not _has_passed(self.claim.attempt_deadline)

    def _is_late(self) -> bool:
        return _has_passed(self.claim.deadline) or _has_passed(self.claim.attempt_deadline)


def _has_passed(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline


class RowWatch(Watch):
    """A watch without a beat, which looks at the row itself: for a run inside a caller's transaction.

    No other connection can see such a row, or renew it, or take it.
    """

    def __init__(self, claim: Claim) -> None:
        super().__init__(claim, lease=float("inf"))

    def checkpoint(self) -> None:
        rows = Execution.objects.using(database()).filter(
            pk=self.claim.execution_id,
            claim_id=self.claim.claim_id,
            status=ExecutionStatus.IN_PROGRESS.value,
        )
        row = rows.values_list("cancel_requested_at").first()
        if row is None:
            self.stop(StopReason.LOST)
        elif row[0] is not None:
            self.stop(StopReason.CANCELLED)
        self._leave_if_stopped()

"""What a claimed execution's run can come to, whatever its order is, and how each outcome is committed.

Nothing here raises for what can be expected; whatever cannot be committed is left to the lease and the
sweep. What is done in between is the business of `body` (definitions) and `mission_body`.
"""

import random
from abc import ABC, abstractmethod
from enum import StrEnum
from typing import Any

from django.db import InterfaceError, OperationalError

from agency.agent.confirmation import Confirmation
from agency.agent.events import ToolCall
from agency.agent.text import describe_error
from agency.enums import EventKind, ExecutionStatus, Verdict
from agency.errors import (
    AgencyError,
    NotDeployed,
    RunCancelled,
    RunParked,
    RunReleased,
    StaleExecution,
)
from agency.execution import store
from agency.execution.claims import Claim, database
from agency.execution.conversation import ClosedAttempt
from agency.execution.failure import ExecutionFailureCode, ExecutionResult
from agency.human.asking import Ask, PersonWanted, about_calls, about_cut_calls
from agency.models import Execution
from agency.redaction import redact_text, safe_logger
from agency.runtime import conf
from agency.runtime.gated_client import GateShut
from agency.runtime.journal import DatabaseAway, UncertainEffect
from agency.runtime.watch import StopReason, Watch

log = safe_logger("agency.runtime")

FIRST_BACKOFF = 2.0
LONGEST_BACKOFF = 300.0
LONGEST_PAUSE = 86_400.0
LONGEST_SPREAD = 5.0


class Outcome(StrEnum):
    """What became of a claim."""

    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    RELEASED = "released"
    PARKED = "parked"
    HELD = "held"
    HANDED_ON = "handed on"
    WAITING = "waiting"
    LOST = "lost"


def fields_of(claim: Claim) -> dict[str, Any]:
    return {"execution_id": claim.execution_id, "claim_id": str(claim.claim_id), "fence": claim.fence}


def given_back(claim: Claim, error: BaseException) -> Outcome:
    """The database was away in the middle of something: give the claim back, or leave it to its lease."""
    log.error("%s: the database is away: %s", claim, error, extra=fields_of(claim))
    try:
        store.release(claim, delay=1.0)
    except (OperationalError, InterfaceError, StaleExecution):
        return Outcome.LOST
    return Outcome.RELEASED


class ClaimedRun(ABC):
    """One claim's work, from its wiring to the commit of what came of it."""

    what = "attempt"

    def __init__(self, claim: Claim, watch: Watch) -> None:
        self.claim = claim
        self.watch = watch

    @abstractmethod
    def work(self) -> Outcome:
        """Put the run together, run it and commit what came of it."""

    @abstractmethod
    def cut(self, verdict: Verdict, summary: str, code: str | None) -> ClosedAttempt | None:
        """What is cut here, for the ledger; `None` before it began or after its end."""

    @property
    @abstractmethod
    def agent_name(self) -> str | None:
        """Who asks, where a person is asked; `None` before the run was put together."""

    @property
    @abstractmethod
    def confirmations(self) -> list[Confirmation]:
        """What people have decided on calls of this run."""

    def run(self) -> Outcome:
        try:
            self.watch.checkpoint()
            return self.work()
        except DatabaseAway as signal:
            return given_back(self.claim, signal)
        except RunReleased as signal:
            return self._released(signal)
        except RunCancelled:
            return self.stopped()
        except RunParked as signal:
            return self._parked(signal)
        except NotDeployed as error:
            return self._held(error)
        except UncertainEffect as signal:
            return self.park(about_cut_calls([(key, self._effective(call)) for key, call in signal.calls]))
        except (StaleExecution, OperationalError, InterfaceError):
            raise
        except Exception as exc:
            log.exception("%s: the run could not be put together", self.claim, extra=fields_of(self.claim))
            return self.failed(
                ExecutionFailureCode.RUNTIME_ERROR, shown("The run could not be put together", exc)
            )

    def finish(
        self,
        result: ExecutionResult,
        closed: ClosedAttempt | None,
        after: Any = None,
        columns: dict[str, Any] | None = None,
    ) -> Outcome:
        status = store.finish(self.claim, result, closed, after, columns)
        if status == ExecutionStatus.FINISHED:
            return Outcome.FINISHED
        return Outcome.CANCELLED if status == ExecutionStatus.CANCELLED else Outcome.FAILED

    def failed(self, code: str, summary: str) -> Outcome:
        closed = self.cut(Verdict.FAILED, summary, code)
        return self.finish(ExecutionResult(False, failure_code=code, failure_summary=summary), closed)

    def _parked(self, signal: RunParked) -> Outcome:
        if isinstance(signal, PersonWanted):
            return self.park(signal.ask)
        if not signal.asked or self.agent_name is None:
            # Nobody could answer: a request is about calls.
            summary = f"The run stopped to wait for a person, but asked for nothing: {signal}"
            return self.failed(ExecutionFailureCode.RUNTIME_ERROR, redact_text(summary))
        return self.park(about_calls(signal.asked, self.agent_name))

    def _effective(self, call: ToolCall) -> ToolCall:
        """The call as it was made: with the arguments that a person gave it."""
        edits = {one.tool_call_id: one.arguments for one in self.confirmations}
        arguments = edits.get(call.tool_call_id)
        return call if arguments is None else call.model_copy(update={"arguments": arguments})

    def park(self, ask: Ask) -> Outcome:
        if store.park(self.claim, ask, conf.current().REQUEST_EXPIRY_SECONDS):
            return Outcome.PARKED
        return self.stopped()

    def stopped(self) -> Outcome:
        """The run left by the watch (or a call in flight was aborted by it): act on the reason."""
        reason = self.watch.reason
        if reason == StopReason.DRAIN:
            store.release(self.claim)
            return Outcome.RELEASED
        if reason == StopReason.DEADLINE:
            what = (
                "The execution"
                if self.watch.is_over()
                else f"{self.what.capitalize()} {self.claim.iteration}"
            )
            return self.failed(ExecutionFailureCode.DEADLINE_EXCEEDED, f"{what} ran out of its time.")
        if reason == StopReason.LOST:
            return Outcome.LOST
        if store.cancel_claimed(self.claim, self.cut(Verdict.CANCELLED, "cancelled", None)):
            return Outcome.CANCELLED
        store.release(self.claim, lost=True)
        return Outcome.RELEASED

    def _released(self, signal: RunReleased) -> Outcome:
        """Put the run back after a pause where model or tools are away, unless it had to stop anyway."""
        if self.watch.reason is not None:
            return self.stopped()
        if isinstance(signal, GateShut):
            # Its provider is left alone by all, so nothing has failed here.
            store.release(
                self.claim, delay=signal.delay + random.uniform(0, min(signal.delay, LONGEST_SPREAD))
            )
            return Outcome.RELEASED
        outages = self._outages(signal)
        if outages["count"] > conf.current().MODEL_RETRIES:
            return self.failed(
                ExecutionFailureCode.RUNTIME_ERROR,
                f"What the run needs could not be reached {outages['count']} times in a row, "
                f"last: {signal.reason}",
            )
        delay = _backoff(outages["count"], signal.delay)
        log.warning(
            "%s: due again in %.1f s: %s", self.claim, delay, signal.reason, extra=fields_of(self.claim)
        )
        store.release(self.claim, delay=delay, metadata={_outages_key(signal): outages})
        return Outcome.RELEASED

    def _held(self, error: NotDeployed) -> Outcome:
        """Leave the row to code that knows it, a release before this one or after it."""
        reason = redact_text(str(error))
        delay = store.hold(self.claim, reason)
        log.warning("%s: held for %g s: %s", self.claim, delay, reason, extra=fields_of(self.claim))
        return Outcome.HELD

    def _outages(self, signal: RunReleased) -> dict[str, int]:
        """How often in a row the model, or the tools, were out of reach, and at which event the last time.

        Whatever was answered since then, under this claim or another, begins the count anew.
        """
        row = Execution.objects.using(database()).get(pk=self.claim.execution_id)
        before = row.metadata.get(_outages_key(signal)) or {"count": 0, "event": 0}
        answers = row.events.filter(kind=EventKind.CONTENT.value, seq__gt=before["event"], error__isnull=True)
        count = 0 if answers.exclude(author="user").exists() else before["count"]
        return {"count": count + 1, "event": row.event_seq}


def _outages_key(signal: RunReleased) -> str:
    return f"{signal.missing}_outages"


def _backoff(failures: int, asked: float) -> float:
    """Seconds until the next try: what the provider asks or a growing time, with full jitter on top.

    What is asked comes from outside: more than a day, or no number at all, is not believed.
    """
    longest = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** (failures - 1))
    if asked > 0:
        asked = min(asked, LONGEST_PAUSE)
        return asked + random.uniform(0, min(longest, asked))
    return random.uniform(longest / 2, longest)


def shown(what: str, error: Exception) -> str:
    """An error as people may see it: ours in full, of a foreign one only its type."""
    if isinstance(error, AgencyError):
        return redact_text(describe_error(error))
    return f"{what}: {type(error).__name__}."

"""What is done with a claimed execution, whoever started it: Celery, a polling worker, a test.

Runs the definition (or the mission's iteration), then commits what came of it, or gives the claim back.
"""

from typing import Any

from django.db import InterfaceError, OperationalError

from agency.agent.confirmation import Confirmation
from agency.enums import Verdict
from agency.errors import ConfigurationError, StaleExecution
from agency.execution import store
from agency.execution.claims import Claim
from agency.execution.conversation import ClosedAttempt
from agency.execution.failure import ExecutionFailureCode, ExecutionResult
from agency.runtime.beat import beat
from agency.runtime.claimed import ClaimedRun, Outcome, fields_of, given_back, log, shown
from agency.runtime.mission_body import MissionBody
from agency.runtime.watch import Watch
from agency.runtime.wiring import Run, wire

__all__ = ["Outcome", "run_claimed"]


def run_claimed(claim: Claim) -> Outcome:
    """Run a claimed execution until it ends, parks or is given back."""
    with beat().watching(claim) as watch:
        body = (MissionBody if claim.is_mission else _Body)(claim, watch)
        doing = (
            "looks whether its wait is over" if claim.is_waiting else f"{body.what} {claim.iteration} begins"
        )
        log.info("%s: %s", claim, doing, extra=fields_of(claim))
        try:
            outcome = body.run()
        except StaleExecution as exc:
            log.warning("%s: stopped: %s", claim, exc, extra=fields_of(claim))
            outcome = Outcome.LOST
        except (OperationalError, InterfaceError) as exc:
            outcome = given_back(claim, exc)
        log.info("%s: %s", claim, outcome.value, extra=fields_of(claim))
        return outcome


class _Body(ClaimedRun):
    """The run of a definition: every attempt until it is decided."""

    def __init__(self, claim: Claim, watch: Watch) -> None:
        super().__init__(claim, watch)
        self.wired: Run | None = None

    @property
    def agent_name(self) -> str | None:
        return self.wired and self.wired.conversation.agent.name

    @property
    def confirmations(self) -> list[Confirmation]:
        return self.wired.confirmations if self.wired else []

    def work(self) -> Outcome:
        self.wired = wire(self.claim, self.watch)
        if self.wired.was_held:
            store.end_hold(self.claim)
        result = self.wired.definition.run(self.wired.input_data, self.wired.conversation)
        return self._conclude(result, self.wired.conversation.closed)

    def _conclude(self, result: Any, closed: ClosedAttempt | None) -> Outcome:
        """Commit what `run()` gave. What no database takes fails the run here, not each claimer in turn."""
        try:
            if not isinstance(result, ExecutionResult):
                raise ConfigurationError(f"run() gave {type(result).__name__}; return an ExecutionResult")
            return self._finish(result, closed)
        except (StaleExecution, OperationalError, InterfaceError):
            raise
        except Exception as exc:
            log.exception("%s: the result could not be stored", self.claim, extra=fields_of(self.claim))
            summary = shown("The result could not be stored", exc)
            return self.failed(ExecutionFailureCode.RUNTIME_ERROR, summary)

    def _finish(self, result: ExecutionResult, closed: ClosedAttempt | None) -> Outcome:
        # Without an attempt to close, what was spent last is the summary after the last one.
        after = self.wired.conversation.usage if closed is None and self.wired is not None else None
        return self.finish(result, closed, after)

    def cut(self, verdict: Verdict, summary: str, code: str | None) -> ClosedAttempt | None:
        """The attempt that is cut here; `None` before it began or after the last one."""
        if self.wired is None:
            return None
        conversation, definition = self.wired.conversation, self.wired.definition
        if conversation.attempt > 1 + definition.MAX_RETRIES:
            return None
        conversation.conclude(verdict, summary, code)
        return conversation.closed

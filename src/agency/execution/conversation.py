"""The handle a definition talks through: one agent, one context, attempt after attempt.

Delivers feedback, turns an agent's outcome into text or the signal that ends the attempt, and says to a
ledger when an attempt is closed. Knows no database: the runtime brings agent, journal and ledger.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic_core import to_json, to_jsonable_python

from agency.agent.agent import Agent
from agency.agent.beside import Beside, ClientFor
from agency.agent.confirmation import Confirmation
from agency.agent.context import ExecutionContext
from agency.agent.events import Event, EventError, Usage
from agency.agent.named import as_client
from agency.agent.result import AgentResult, RunStatus
from agency.agent.text import clean_json, describe_error
from agency.enums import EventKind, Verdict
from agency.errors import AgencyError, RunCancelled, RunParked, RunReleased
from agency.execution.failure import ExecutionFailureCode
from agency.execution.inputs import ExecutionInputType
from agency.execution.scratchpad import ToolScratchpad
from agency.execution.storable import storable


class TurnFailed(AgencyError):
    """The agent could not answer: the execution ends as failed with this code and summary."""

    def __init__(self, code: str, summary: str) -> None:
        super().__init__(summary)
        self.code = code
        self.summary = summary


@dataclass
class ClosedAttempt:
    """What the ledger keeps of attempt `n`.

    `feedback` is what the next attempt is told; `state` is what it needs beside the events:
    `{"opening": the message this attempt opened with, "context_state": …, "current_step": …}`.
    `decision` is a supervisor's, as JSON; `kind` is that of the event that tells of the attempt.
    """

    n: int
    verdict: Verdict
    summary: str
    feedback: str | None = None
    failure_code: str | None = None
    usage: Usage = field(default_factory=Usage)
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    decision: dict[str, Any] | None = None
    kind: EventKind = EventKind.ATTEMPT_COMPLETED


class AttemptLedger(Protocol):
    """Where closed attempts are committed before the next one begins."""

    def close_attempt(self, closed: ClosedAttempt) -> None: ...


class NullLedger:
    """Keeps nothing: the ledger of a run in bare Python."""

    def close_attempt(self, closed: ClosedAttempt) -> None:
        return None


class Conversation:
    """What `execute(input_data, conversation)` talks to.

    `attempt` counts from 1; `feedback` is what the last attempt was told and this one has not yet
    delivered, or `None`; `scratchpad`, `context` and `execution_input` are the execution's own.
    `closed` is the attempt that ended the run, for the runtime to commit with the final state; `None`
    where the last attempt is in the ledger already. `beside` gives clients for what else is asked of models
    in this attempt; `client_for` makes them. `confirmations` are what people have decided on
    calls of this attempt.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        context: ExecutionContext | None = None,
        scratchpad: ToolScratchpad | None = None,
        execution_input: ExecutionInputType | None = None,
        attempt: int = 1,
        feedback: str | None = None,
        previous_opening: str | None = None,
        ledger: AttemptLedger | None = None,
        client_for: ClientFor = as_client,
        confirmations: Sequence[Confirmation] = (),
    ) -> None:
        self.agent = agent
        self.context = context or ExecutionContext()
        self.scratchpad = scratchpad or ToolScratchpad()
        agent.scope.resources[ToolScratchpad] = self.scratchpad
        self.execution_input = execution_input
        self.attempt = attempt
        self.feedback = feedback
        self.last_feedback = feedback
        self.closed: ClosedAttempt | None = None
        self._ledger = ledger or NullLedger()
        self._confirmations = confirmations
        self._previous_opening = previous_opening
        self._opening: str | None = None
        self._first_event = len(self.context.events)
        self._extra_usage = Usage()
        self._client_for = client_for
        self.beside = Beside(agent, self.context, client_for)

    def ask(self, message: str) -> str:
        """Send a user message, let the agent work until it answers, and return the answer as text.

        The first message of a retry carries the feedback: alone where the attempt opens as the last one
        did (the conversation still holds that message), else before the message.
        """
        return answer_of(self.agent.run(self._deliver(message), self.context, self._confirmations))

    def summarise(self, prompt: str) -> str:
        """One model call with tools off, after pending feedback; raises `TurnFailed` if it gives no text."""
        message = f"{self.feedback}\n\n{prompt}" if self.feedback else prompt
        self.feedback = None
        result = _without_tools(self.agent).run(message, self.context)
        if result.stop_reason == "model_unavailable":
            raise TurnFailed(ExecutionFailureCode.RUNTIME_ERROR, _error_text(result))
        return answer_of(result)

    @property
    def usage(self) -> Usage:
        """What the current attempt has cost so far."""
        spent = (event.usage for event in self.context.events[self._first_event :] if event.usage)
        return sum(spent, self._extra_usage)

    def add_usage(self, usage: Usage) -> None:
        """Count what was spent outside the context."""
        self._extra_usage += usage

    def conclude(self, verdict: Verdict, summary: str, failure_code: str | None = None) -> None:
        """Leave the current attempt in `closed`; the runtime commits it with the execution's last state."""
        self.closed = self._close(verdict, summary, None, failure_code)

    def close_attempt(self, verdict: Verdict, feedback: str, failure_code: str | None = None) -> None:
        """Commit the current attempt and turn to the next, which has the feedback still to deliver."""
        self.context.check_state()
        self._ledger.close_attempt(self._close(verdict, feedback, feedback, failure_code))
        self.scratchpad.clear()
        self.attempt += 1
        self.feedback = self.last_feedback = feedback
        self._previous_opening = self._opening or self._previous_opening
        self._opening = None
        self._first_event = len(self.context.events)
        self._extra_usage = Usage()
        self.beside = Beside(self.agent, self.context, self._client_for)

    def record_error(self, error: Exception, doing: str) -> str:
        """Put an error that nobody expected on record; returns the id of the event."""
        lines = describe_error(error).splitlines()
        event = Event(
            execution_id=self.context.execution_id,
            author=self.agent.name,
            step=self.context.current_step,
            error=EventError(code=ExecutionFailureCode.RUNTIME_ERROR, message=f"{doing}: {lines[0]}"),
        )
        self.agent.scope.journal.record(f"error:{event.id}", None, [event])
        self.context.add_event(event)
        return event.id

    def _deliver(self, message: str) -> str:
        if self._opening is not None:
            return message
        self._opening = message
        feedback, self.feedback = self.feedback, None
        if not feedback:
            return message
        # The last attempt's may come from the ledger, which keeps no secrets.
        same = storable(message) == storable(self._previous_opening)
        return feedback if same else f"{feedback}\n\n{message}"

    def _close(
        self, verdict: Verdict, summary: str, feedback: str | None, failure_code: str | None
    ) -> ClosedAttempt:
        state = to_jsonable_python(self.context.state, inf_nan_mode="strings", fallback=str)
        return ClosedAttempt(
            n=self.attempt,
            verdict=verdict,
            summary=summary,
            feedback=feedback,
            failure_code=failure_code,
            usage=self.usage,
            state={
                "opening": self._opening or self._previous_opening,
                "context_state": clean_json(state),
                "current_step": self.context.current_step,
            },
        )


def _without_tools(agent: Agent) -> Agent:
    """The same agent for one plain call: journal, hooks and history stay, tools and output type do not."""
    return Agent(
        agent.name,
        agent.llm,
        agent.instructions,
        max_steps=1,
        request_builder=agent.request_builder,
        hooks=agent.hooks,
        scope=agent.scope,
        model_retries=agent.model_retries,
        settings=agent.settings,
    )


def answer_of(result: AgentResult) -> str:
    """The answer as text, or the signal that this outcome means for the run."""
    match result.status:
        case RunStatus.COMPLETED:
            return _text(result.output)
        case RunStatus.INTERRUPTED:
            raise RunParked(result.stop_reason, result.asked)
        case RunStatus.CANCELLED:
            raise RunCancelled(result.stop_reason)
        case RunStatus.MAX_STEPS:
            raise _limit_reached("The agent used up its steps without an answer.")
        case RunStatus.LIMIT:
            raise _limit_reached(f"The agent reached its limit {result.stop_reason}.")
        case RunStatus.FAILED:
            raise _failure(result)


def _limit_reached(summary: str) -> TurnFailed:
    return TurnFailed(ExecutionFailureCode.LIMIT_REACHED, summary)


_FAILURES = {
    "context_overflow": ExecutionFailureCode.CONTEXT_OVERFLOW,
    "model_refused": ExecutionFailureCode.MODEL_REFUSED,
}


def _failure(result: AgentResult) -> BaseException:
    if result.stop_reason in {"model_unavailable", "tools_unavailable"}:
        missing = result.stop_reason.partition("_")[0]
        return RunReleased(_error_text(result), result.retry_after or 0.0, missing)
    code = _FAILURES.get(result.stop_reason, ExecutionFailureCode.RUNTIME_ERROR)
    return TurnFailed(code, _error_text(result))


def _error_text(result: AgentResult) -> str:
    return result.error.message if result.error else f"The agent failed: {result.stop_reason}."


def _text(output: Any) -> str:
    return output if isinstance(output, str) else to_json(output).decode()

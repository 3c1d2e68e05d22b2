"""One iteration of a mission: a turn of the agent, then the supervisor's decision. Decides; writes nothing.

What is asked of models goes through the run's journal, so that a new claimer pays for nothing twice.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_jsonable_python

from agency.agent.agent import Agent
from agency.agent.beside import Beside, ClientFor
from agency.agent.confirmation import Confirmation
from agency.agent.context import ExecutionContext
from agency.agent.events import Event, Usage
from agency.agent.llm import LlmClient
from agency.agent.providers.choice import provider_of
from agency.agent.result import RunStatus
from agency.agent.sums import usage_of
from agency.agent.text import clean_json, cut
from agency.enums import DecisionStatus, EventKind, Verdict
from agency.execution.conversation import ClosedAttempt, TurnFailed, answer_of
from agency.execution.metadata import OPENING
from agency.human.asking import PersonWanted
from agency.mission import waits
from agency.mission.branches import BranchedLoopDecision
from agency.mission.budget import Budget
from agency.mission.completion.declared import ClaimedCompletion
from agency.mission.completion.verify import Verified, verify
from agency.mission.config import LoopConfig
from agency.mission.context import log_lines, thread_context
from agency.mission.course import REPEATS, Round
from agency.mission.loop import Evaluation, LoopDecision, evaluate_loop_decision
from agency.mission.placeholders import Counters, fill
from agency.mission.prices import asked_by, unpriced
from agency.mission.prompt import Matter
from agency.mission.transcript import LOCAL_ORDERS
from agency.mission.watches import registry as watches
from agency.models import Execution, Iteration
from agency.thread.runner import ThreadRunner

ANSWER_KEPT = 4_000
GO_ON = "Go on with the objective."


@dataclass(frozen=True, slots=True)
class Opening:
    """What an iteration begins with; `said_by` is empty for the mission's own prompt."""

    message: str
    said_by: str = ""


def opening_of(execution: Execution, last: Iteration | None) -> Opening:
    """The prompt; later what ended a pause, or else the supervisor's instruction."""
    if last is None:
        return Opening(execution.config["mission"]["prompt"])
    given: dict[str, Any] = execution.metadata.get(OPENING) or {}
    if given.get("iteration") == last.n + 1:
        return Opening(given["message"], given["said_by"])
    return Opening(last.feedback or GO_ON, "supervisor")


class MissionIteration:
    """The n-th iteration of an execution (the only one, of a one-shot mission).

    `recent` are the committed ones before it, newest first, as far as `rounds` looks back.
    """

    def __init__(
        self,
        execution: Execution,
        recent: Sequence[Iteration],
        agent: Agent,
        context: ExecutionContext,
        confirmations: Sequence[Confirmation],
        client_for: ClientFor,
    ) -> None:
        self.execution = execution
        self.n = execution.iteration + 1
        self.config = LoopConfig.read(execution.metadata)
        self.agent = agent
        self.context = context
        self.answer = ""
        self.failure: TurnFailed | None = None
        self._last = recent[0] if recent else None
        self._recent = recent
        self.opening = opening_of(execution, self._last)
        self._budget = Budget.of(
            self.config.limits, Usage.model_validate(execution.usage), self._unpriced(agent)
        )
        agent.limits = self._budget.within(agent.limits)
        self._runner = ThreadRunner(agent, context, confirmations)
        self._beside = Beside(agent, context, client_for, self._check_budget)
        self._first_event = len(context.events)

    @property
    def counters(self) -> Counters:
        return Counters(self.n, self.execution.max_iterations or 1)

    @property
    def events(self) -> list[Event]:
        """What this iteration has put on record."""
        return self.context.events[self._first_event :]

    @property
    def usage(self) -> Usage:
        """What this iteration has cost so far."""
        return usage_of(self.events)

    def take_turn(self) -> None:
        """Have the agent work until it answers; leaves `answer`, or `failure` if it could not.

        A budget that is reached before or in the turn asks a person (`PersonWanted`) and the turn goes on.
        """
        self._check_budget()
        opening = self.opening
        if opening.said_by:
            result = self._runner.continue_turn(opening.message, opening.said_by)
        else:
            result = self._runner.run(opening.message)
        if result.status is RunStatus.LIMIT:
            self._check_budget()
        try:
            self.answer = answer_of(result)
        except TurnFailed as failure:
            self.failure = failure

    def evaluate(self) -> Evaluation:
        """Ask the supervisor how the loop goes on, if the budget has anything left for each question."""
        model = self.config.supervisor_model
        form = waits.knowing(BranchedLoopDecision if self._is_local() else LoopDecision, watches.names())
        client = self._beside.client(self._supervisor(model), "supervisor")
        return evaluate_loop_decision(client, self._matter(), form)

    def verify(self, decision: LoopDecision, cancelled: Callable[[], bool]) -> tuple[LoopDecision, Verified]:
        """Have a claimed completion checked: without that it becomes "continue" with what is missing."""
        mission = self.execution.config["mission"]
        claimed = ClaimedCompletion(
            execution_id=str(self.execution.pk),
            mission=mission["name"],
            objective=mission["prompt"],
            iteration=self.n,
            answer=self.answer,
            evidence=decision.evidence or "",
            state=copy.deepcopy(self.context.state),
        )
        verified = verify(self.config.completion_checks, claimed, cancelled)
        if verified.failed is None:
            return decision, verified
        going_on = decision.model_copy(
            update={
                "status": DecisionStatus.CONTINUE,
                "reason": f"The completion check {verified.failed!r} has not passed.",
                "next_input": verified.missing,
            }
        )
        return going_on, verified

    def _unpriced(self, agent: Agent) -> list[str]:
        """The models whose price is not known, where there is a cap on money: they may be others by now."""
        if "cost" not in self.config.limits:
            return []
        supervisor = self.config.supervisor_model if self.config.is_loop else ""
        return unpriced([*asked_by(agent), *([supervisor] if supervisor else [])])

    def _check_budget(self) -> None:
        ask = self._budget.ask(self.usage)
        if ask is not None:
            raise PersonWanted(ask)

    def rounds(self) -> list[Round]:
        """What the last committed iterations asked for and brought, oldest first.

        None from before a person's answer: what was stuck then may go on now.
        """
        said_by, found = self.opening.said_by, list[Round]()
        for row in self._recent[: REPEATS - 1]:
            if said_by == "person":
                break
            found.insert(0, Round(row.feedback, row.state.get("answer", "")))
            said_by = row.state.get("said_by", "")
        return found

    def failed_in_a_row(self) -> int:
        """How many turns have failed up to this one, without one between that did not."""
        if self.failure is None:
            return 0
        count = 1
        for code in self.execution.iterations.order_by("-n").values_list("failure_code", flat=True)[:100]:
            if code is None:
                break
            count += 1
        return count

    def close(
        self,
        verdict: Verdict,
        summary: str,
        *,
        decision: dict[str, Any] | None = None,
        feedback: str | None = None,
        code: str | None = None,
    ) -> ClosedAttempt:
        """What the ledger keeps of this iteration."""
        state = to_jsonable_python(self.context.state, inf_nan_mode="strings", fallback=str)
        if code is None and self.failure is not None:
            code = self.failure.code
        return ClosedAttempt(
            n=self.n,
            verdict=verdict,
            summary=summary,
            feedback=feedback,
            failure_code=code,
            usage=self.usage,
            state={
                "opening": self.opening.message,
                "said_by": self.opening.said_by,
                "answer": cut(self.answer, ANSWER_KEPT),
                "context_state": clean_json(state),
                "current_step": self.context.current_step,
            },
            decision=decision,
            kind=EventKind.ITERATION_COMPLETED if self.config.is_loop else EventKind.ATTEMPT_COMPLETED,
        )

    def _supervisor(self, model: str) -> LlmClient | str:
        return model or self.agent.llm

    def _is_local(self) -> bool:
        """Whether the supervisor's answers are held to the form by a grammar."""
        model = self.config.supervisor_model
        return (provider_of(model) if model else self.execution.provider) == "local"

    def _matter(self) -> Matter:
        mission, last = self.execution.config["mission"], self._last
        summary = last.summary if last is not None else ""
        log = log_lines(self.events)
        if self.failure is not None:
            log.append(f"this round's turn failed ({self.failure.code}): {self.failure.summary}")
        transcript, now = thread_context(self.execution, self.config.caps, log)
        matter = Matter(
            objective=mission["prompt"],
            counters=self.counters,
            loop_prompt=fill(self.config.loop_prompt or "", self.counters, mission["name"], summary),
            last_summary=summary,
            transcript=transcript,
            watches=watches.described(),
            now=f"{now:%A, %Y-%m-%d %H:%M} UTC",
        )
        return matter.within(LOCAL_ORDERS) if self._is_local() else matter

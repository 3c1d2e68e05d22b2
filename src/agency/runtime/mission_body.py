"""What is done with the claim of a mission: one iteration, its decision, and the commit of what follows.

A claim is never held between iterations: what goes on is due again, what waits holds nobody.
"""

from dataclasses import asdict
from typing import Any, assert_never

from agency.agent.confirmation import Confirmation
from agency.enums import DecisionStatus, Verdict
from agency.execution import store
from agency.execution.claims import Claim
from agency.execution.conversation import ClosedAttempt, TurnFailed
from agency.execution.failure import ExecutionFailureCode, ExecutionResult
from agency.execution.output import to_output
from agency.human.asking import about_input
from agency.mission import looking
from agency.mission import store as mission_store
from agency.mission.course import Ask, Complete, Course, Fail, GoOn, LimitReached, Pause, course_of
from agency.mission.iteration import MissionIteration
from agency.mission.loop import Evaluation, LoopDecision
from agency.runtime import conf
from agency.runtime.claimed import ClaimedRun, Outcome
from agency.runtime.watch import Watch
from agency.runtime.wiring import MissionRun, wire_mission
from agency.thread import store as thread_store

INVALID = "The supervisor gave no valid decision, twice"
LIMIT = "The mission used all of its {n} iterations and was not complete."


class MissionBody(ClaimedRun):
    """One iteration of a loop, or the only turn of a one-shot mission."""

    what = "iteration"

    def __init__(self, claim: Claim, watch: Watch) -> None:
        super().__init__(claim, watch)
        self.wired: MissionRun | None = None
        self.iteration: MissionIteration | None = None

    @property
    def agent_name(self) -> str | None:
        return self.wired and self.wired.agent.name

    @property
    def confirmations(self) -> list[Confirmation]:
        return self.wired.confirmations if self.wired else []

    def work(self) -> Outcome:
        if self.claim.is_waiting and not looking.look(self.claim, self._must_stop):
            return Outcome.WAITING
        self.wired = run = wire_mission(self.claim, self.watch)
        if run.was_held:
            store.end_hold(self.claim)
        limit = run.execution.max_iterations
        if limit is not None and self.claim.iteration > limit:
            return self._limit_reached(limit, None)
        self.iteration = now = MissionIteration(
            run.execution, run.recent, run.agent, run.context, run.confirmations, run.clients.named
        )
        self.claim.attempt_deadline = conf.attempt_deadline(now.config.iteration_seconds)
        if not now.config.is_loop:
            now.take_turn()
            return self._one_shot(now)
        if now.n == 1:
            mission_store.bootstrap_loop(self.claim)
        now.take_turn()
        if now.failure is not None and now.failed_in_a_row() >= now.config.failed_turns:
            return self._given_up(now.failure)
        self.watch.checkpoint()
        evaluation = now.evaluate()
        if evaluation.decision is None:
            return self._undecided(now, evaluation)
        decision = evaluation.decision
        if now.config.completion_checks:  # a better proof than a quote, so its lack decides nothing
            decision = evaluation.unproven or decision
        return self._decided(now, decision, evaluation.claimed)

    def cut(self, verdict: Verdict, summary: str, code: str | None) -> ClosedAttempt | None:
        return self.iteration.close(verdict, summary, code=code) if self.iteration else None

    def _one_shot(self, now: MissionIteration) -> Outcome:
        if now.failure is not None:
            return self.failed(now.failure.code, now.failure.summary)
        closed = now.close(Verdict.PASSED, now.answer)
        return self.finish(self._success(now), closed, columns={"result": self._result(now)})

    def _given_up(self, failure: TurnFailed) -> Outcome:
        """Too many turns in a row have failed. What a turn may do at most is not the limit of the loop."""
        is_turns_limit = failure.code == ExecutionFailureCode.LIMIT_REACHED
        code = ExecutionFailureCode.NO_PROGRESS if is_turns_limit else failure.code
        closed = self.cut(Verdict.FAILED, failure.summary, failure.code)
        return self._fail(code, failure.summary, closed, None)

    def _undecided(self, now: MissionIteration, evaluation: Evaluation) -> Outcome:
        """No decision is none: the execution fails, and what the supervisor said is kept."""
        code = ExecutionFailureCode.SUPERVISOR_INVALID
        summary = f"{INVALID}: {evaluation.error}"
        kept = {"error": evaluation.error, "raw": evaluation.raw}
        closed = now.close(Verdict.FAILED, summary, decision=kept, code=code)
        return self._fail(code, summary, closed, {"loop_decision": kept})

    def _decided(self, now: MissionIteration, decision: LoopDecision, claimed: bool) -> Outcome:
        """Weigh the decision by what code knows, and follow it; what was only `claimed` is on record."""
        extra: dict[str, Any] = {}
        if claimed and decision.status is not DecisionStatus.COMPLETE:
            extra = {"claimed": DecisionStatus.COMPLETE.value}
        if decision.status is DecisionStatus.COMPLETE and now.config.completion_checks:
            decision, verified = now.verify(decision, self.watch.is_aborted)
            self.watch.checkpoint()
            extra = {"claimed": DecisionStatus.COMPLETE.value, "checks": asdict(verified)}
        course = course_of(decision, now.counters, now.rounds(), now.answer)
        return self._follow(now, decision, course, extra)

    def _follow(
        self, now: MissionIteration, decision: LoopDecision, course: Course, extra: dict[str, Any]
    ) -> Outcome:
        told = {**decision.model_dump(mode="json", exclude_none=True), **extra}
        closed = now.close(
            Verdict(decision.status.value), decision.summary, decision=told, feedback=decision.next_input
        )
        match course:
            case GoOn():
                store.hand_on(self.claim, closed, now.config.loop_delay_seconds)
                return Outcome.HANDED_ON
            case Complete():
                columns = {
                    "loop_decision": told,
                    "result": {**self._result(now), "summary": decision.summary},
                }
                return self.finish(self._success(now), closed, columns=columns)
            case Fail():
                code = ExecutionFailureCode.MISSION_FAILED
                closed.failure_code = code
                return self._fail(code, course.summary, closed, {"loop_decision": told})
            case LimitReached():
                return self._limit_reached(now.counters.max_iterations, closed, {"loop_decision": told})
            case Ask():
                return self._block(closed, course)
            case Pause():
                looking.begin(self.claim, closed, course.wait, self._must_stop)
                return Outcome.WAITING
            case _:
                assert_never(course)

    def _must_stop(self) -> bool:
        return self.watch.reason is not None

    def _block(self, closed: ClosedAttempt, course: Ask) -> Outcome:
        required = course.required_input
        ask = about_input(
            required.question,
            required.kind,
            required.choices,
            needs_grant=closed.n == (self.wired and self.wired.execution.max_iterations),
            because=ExecutionFailureCode.NO_PROGRESS if course.is_stuck else None,
        )
        if mission_store.block(self.claim, closed, ask, conf.current().REQUEST_EXPIRY_SECONDS):
            return Outcome.PARKED
        return self.stopped()

    def _limit_reached(
        self, limit: int, closed: ClosedAttempt | None, columns: dict[str, Any] | None = None
    ) -> Outcome:
        return self._fail(ExecutionFailureCode.LIMIT_REACHED, LIMIT.format(n=limit), closed, columns)

    def _fail(
        self, code: str, summary: str, closed: ClosedAttempt | None, columns: dict[str, Any] | None
    ) -> Outcome:
        result = ExecutionResult(False, failure_code=code, failure_summary=summary)
        return self.finish(result, closed, columns=columns)

    def _success(self, now: MissionIteration) -> ExecutionResult:
        return ExecutionResult(True, output=to_output(now.answer))

    def _result(self, now: MissionIteration) -> dict[str, Any]:
        """The last turn as messages, and its answer."""
        shown = [thread_store.message(event) for event in now.events]
        messages = [{"role": one[0], "content": one[1]} for one in shown if one is not None]
        return {"messages": messages, "output": now.answer}

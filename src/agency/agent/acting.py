"""Runs the tool calls of one model response: validated, injected, journaled, in parallel where allowed.

The journal, hooks and checkpoint are only ever used on the run's own thread; worker threads run tools
and nothing else. They are daemons made for the call, so a tool that hangs holds up no other run.
"""

import hashlib
import inspect
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from agency.agent.agent_tool import AgentTool
from agency.agent.events import ToolCall, ToolResult
from agency.agent.injection import HumanAnswer, ToolCallInfo, fill
from agency.agent.inner import InnerRun, Pauses
from agency.agent.journal import RunScope
from agency.agent.record import Record
from agency.agent.relay import Relay
from agency.agent.result import AgentResult, RunStatus
from agency.agent.text import canonical, cut, describe_error, to_payload
from agency.agent.tool_schema import explain
from agency.agent.tools import Tool
from agency.enums import Effect
from agency.errors import RunReleased, RunSignal

if TYPE_CHECKING:
    from agency.agent.agent import Agent

WIDTH = 16
POLL = 0.2


@dataclass(frozen=True, slots=True)
class Job:
    """A call that is ready to run: its place among the calls, its tool and its keys in the journal.

    `inner` is the run of another agent that the call stands for.
    """

    place: int
    call: ToolCall
    tool: Tool
    arguments: dict[str, Any]
    key: str
    idempotency_key: str
    inner: InnerRun | None = None


@dataclass(frozen=True, slots=True)
class Running:
    """A job on a thread of its own, and the `time.monotonic()` at which nobody waits any longer."""

    job: Job
    give_up_at: float | None


Outcome = ToolResult | AgentResult
"""What came of a call: a result, or how the run inside it stands, which waits for a person or a model."""


@dataclass(slots=True)
class Act:
    """One act of `agent`: calls in, results out, in the calls' order."""

    agent: "Agent"
    record: Record
    pauses: Pauses = field(default_factory=Pauses)
    relay: Relay | None = None

    @property
    def scope(self) -> RunScope:
        return self.agent.scope

    def run(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """A result for each call, but for those that are held, which `pauses` then names.

        A `RunSignal` passes through after what was done is recorded.
        """
        results: dict[int, Outcome] = {}
        jobs: deque[Job] = deque()
        for place, call in enumerate(calls):
            ready = self._prepare(place, call)
            if isinstance(ready, Job):
                jobs.append(ready)
            else:
                results[place] = ready
        if len(jobs) > 1 and all(job.tool.conduct.parallel for job in jobs):
            self._threaded(jobs, results)
        else:
            for job in jobs:
                self._single(job, results)
        done = (results[place] for place in range(len(calls)))
        return [result for result in done if isinstance(result, ToolResult)]

    def _prepare(self, place: int, call: ToolCall) -> Job | ToolResult:
        tool = self.agent.tools_by_name.get(call.name)
        if tool is None:
            known = ", ".join(self.agent.tools_by_name) or "none"
            return failure(call, f"There is no tool {call.name!r}. The tools are: {known}.")
        if call.invalid is not None:
            broken = cut(call.invalid, 500)
            return failure(
                call, f"The arguments of {call.name} are not a JSON object; it was not run: {broken}"
            )
        key = self._key(place, call)
        recorded = self.scope.journal.recall(key)
        if recorded is not None:
            return self._replayed(call, recorded.result)
        try:
            arguments = tool.parameters.validate(call.arguments)
        except ValidationError as exc:
            return failure(call, f"Invalid arguments for {call.name}: {explain(exc)}")
        prefix = self.scope.journal.scope or self.record.context.execution_id
        return Job(place, call, tool, arguments, key, f"{prefix}:{key}", self._inner(tool, call))

    def _key(self, place: int, call: ToolCall) -> str:
        digest = hashlib.sha256(canonical(call.arguments).encode("utf-8", "surrogatepass"))
        ordinal = self.record.history.ordinals.get(call.tool_call_id, place)
        return self.record.key(f"{ordinal}:{call.name}:{digest.hexdigest()[:16]}")

    def _replayed(self, call: ToolCall, recorded: dict[str, Any]) -> ToolResult:
        """The recorded result, with the record of the run inside the call, if it had one."""
        result = dict(recorded)
        keys: list[str] = result.pop("inner_keys", [])
        for key in keys:
            self.record.replay(key)
        if keys:
            self.pauses.inner_keys[call.tool_call_id] = keys
        return ToolResult.model_validate(result)

    def _inner(self, tool: Tool, call: ToolCall) -> InnerRun | None:
        if not isinstance(tool, AgentTool):
            return None
        if self.relay is None:
            self.relay = Relay()
        return InnerRun(tool.agent, call, self.agent, self.record, self.relay, self.pauses)

    def _single(self, job: Job, results: dict[int, Outcome]) -> None:
        if job.tool.timeout is not None and not job.tool.is_async:
            self._threaded(deque([job]), results)
            return
        answered = self._begin(job)
        results[job.place] = self._finish(job, answered or self._call(job, None))

    def _threaded(self, jobs: deque[Job], results: dict[int, Outcome]) -> None:
        running: dict[Future[Outcome], Running] = {}
        signal: RunSignal | None = None
        relay = self.relay = self.relay or Relay()
        try:
            while running or (jobs and signal is None):
                try:
                    while jobs and len(running) < WIDTH and signal is None:
                        self._start(jobs.popleft(), relay, running, results)
                except RunSignal as stop:
                    signal = stop
                signal = self._collect(relay, running, results) or signal
        finally:
            relay.close()
        if signal is not None:
            raise signal

    def _start(
        self, job: Job, relay: Relay, running: dict[Future[Outcome], Running], results: dict[int, Outcome]
    ) -> None:
        answered = self._begin(job)
        if answered is not None:
            results[job.place] = self._finish(job, answered)
            return
        timeout = None if job.tool.is_async else job.tool.timeout
        give_up_at = None if timeout is None else time.monotonic() + timeout
        future = on_thread(lambda: self._call(job, give_up_at), f"tool-{job.call.name}")
        running[future] = Running(job, give_up_at)
        future.add_done_callback(relay.wake)

    def _collect(
        self, relay: Relay, running: dict[Future[Outcome], Running], results: dict[int, Outcome]
    ) -> RunSignal | None:
        """Wait for the next jobs to end or run out of time; return the signal that one of them raised."""
        if not running:
            return None
        now = time.monotonic()
        waits = [one.give_up_at - now for one in running.values() if one.give_up_at is not None]
        relay.serve(max(0.0, min([POLL, *waits])))
        signal: RunSignal | None = None
        for future, one in list(running.items()):
            if future.done():
                del running[future]
                raised = future.exception()
                if isinstance(raised, RunSignal):
                    signal = raised
                else:
                    results[one.job.place] = self._finish(one.job, future.result())
            elif one.give_up_at is not None and time.monotonic() >= one.give_up_at:
                del running[future]
                results[one.job.place] = self._finish(one.job, self._given_up(one.job))
        return (self._released() if running else None) or signal

    def _given_up(self, job: Job) -> ToolResult:
        if job.inner is not None:
            job.inner.journal.abandoned = True
        return failure(job.call, f"{job.call.name} gave no result within {job.tool.timeout:g} seconds")

    def _released(self) -> RunReleased | None:
        """A run that gives its claim back lets the tools that it started end; a cancel leaves at once."""
        try:
            self.scope.checkpoint()
        except RunReleased as stop:
            return stop
        return None

    def _begin(self, job: Job) -> ToolResult | None:
        """Last things before the call; a hook's answer stands for it."""
        self.scope.checkpoint()
        hook = self.agent.hooks.before_tool
        if hook is not None and (answer := hook(self.record.context, job.call)) is not None:
            return fitting(job.call, answer) if isinstance(answer, ToolResult) else success(job.call, answer)
        if job.tool.effect is not Effect.READ:
            self.scope.journal.intend(job.key, job.tool.effect, job.idempotency_key)
        return None

    def _finish(self, job: Job, outcome: Outcome) -> Outcome:
        if isinstance(outcome, AgentResult):
            self.pauses.held[job.call.tool_call_id] = outcome
            return outcome
        hook = self.agent.hooks.after_tool
        if hook is not None and (replaced := hook(self.record.context, job.call, outcome)) is not None:
            outcome = fitting(job.call, replaced)
        kept = outcome.model_dump(mode="json")
        if job.inner is not None and job.inner.journal.keys:
            kept["inner_keys"] = self.pauses.inner_keys[job.call.tool_call_id] = job.inner.journal.keys
        self.scope.journal.record(job.key, kept, [])
        return outcome

    def _call(self, job: Job, give_up_at: float | None) -> Outcome:
        """The edge to a tool's code: whatever it does becomes a result; only signals and Ctrl-C pass.

        A fault of the run that a run inside the call met (its journal is gone) is no failure of the tool.
        """
        tries = job.tool.conduct.retries + 1
        while True:
            tries -= 1
            try:
                return self._invoke(job, give_up_at)
            except (RunSignal, KeyboardInterrupt):
                raise
            except BaseException as exc:
                if job.inner is not None and job.inner.journal.broken is not None:
                    raise job.inner.journal.broken from None
                result = failure(job.call, exc)
            late = give_up_at is not None and time.monotonic() >= give_up_at
            if tries <= 0 or late or self.scope.is_cancelled():
                return result

    def _invoke(self, job: Job, give_up_at: float | None) -> Outcome:
        timeout = job.tool.timeout
        if give_up_at is None and timeout is not None:
            give_up_at = time.monotonic() + timeout
        info = ToolCallInfo(
            job.call.tool_call_id,
            job.idempotency_key,
            _earliest(give_up_at, self.scope.deadline),
            self.scope.is_cancelled,
        )
        if job.inner is not None:
            return outcome_of(job.call, job.inner.go(lambda: self._value(job, info), info))
        value = self._value(job, info)
        if inspect.iscoroutine(value):
            from agency.agent.background import run

            value = run(value, timeout=timeout, cancelled=self.scope.is_cancelled)
        return success(job.call, value)

    def _value(self, job: Job, info: ToolCallInfo) -> Any:
        """What the tool's function returns."""
        hidden = fill(job.tool.injected, self.record.context, info, self._resources(job))
        return job.tool.invoke({**job.arguments, **hidden})

    def _resources(self, job: Job) -> Mapping[type, Any]:
        decision = self.pauses.decisions.get(job.call.tool_call_id) if job.tool.asks_person else None
        if decision is None:
            return self.scope.resources
        return {**self.scope.resources, HumanAnswer: HumanAnswer(decision.answer)}


def success(call: ToolCall, value: Any) -> ToolResult:
    return ToolResult(
        tool_call_id=call.tool_call_id, name=call.name, status="success", content=to_payload(value)
    )


def failure(call: ToolCall, problem: BaseException | str) -> ToolResult:
    text = problem if isinstance(problem, str) else describe_error(problem)
    return ToolResult(tool_call_id=call.tool_call_id, name=call.name, status="error", content=text)


def fitting(call: ToolCall, result: ToolResult) -> ToolResult:
    """A hook's result as the answer to this call."""
    return ToolResult(
        tool_call_id=call.tool_call_id,
        name=call.name,
        status=result.status,
        content=to_payload(result.content),
    )


def outcome_of(call: ToolCall, result: AgentResult) -> Outcome:
    """What the end of a run inside a call means for the call."""
    if result.status is RunStatus.COMPLETED:
        return success(call, result.output)
    if result.status is RunStatus.INTERRUPTED or result.stop_reason == "model_unavailable":
        return result
    why = f": {result.error.message}" if result.error else ""
    return failure(call, f"{call.name} ended without an answer ({result.stop_reason}){why}")


def on_thread(work: Callable[[], Outcome], name: str) -> Future[Outcome]:
    """Run `work` on a daemon thread of its own, with the caller's context variables."""
    future: Future[Outcome] = Future()
    variables = copy_context()

    def body() -> None:
        try:
            future.set_result(variables.run(work))
        except BaseException as exc:
            future.set_exception(exc)

    threading.Thread(target=body, name=name, daemon=True).start()
    return future


def _earliest(*moments: float | None) -> float | None:
    return min((moment for moment in moments if moment is not None), default=None)

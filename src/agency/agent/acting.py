"""Runs the tool calls of one model response: validated, injected, journaled, in parallel where allowed.

The journal, hooks and checkpoint are only ever used on the run's own thread; worker threads run tools
and nothing else. They are daemons made for the call, so a tool that hangs holds up no other run.
"""

import inspect
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from agency.agent.context import ExecutionContext
from agency.agent.events import ToolCall, ToolResult
from agency.agent.hooks import Hooks
from agency.agent.injection import ToolCallInfo, fill
from agency.agent.journal import RunScope
from agency.agent.text import cut, describe_error, to_payload
from agency.agent.tool_schema import explain
from agency.agent.tools import Tool
from agency.enums import Effect
from agency.errors import RunReleased, RunSignal

WIDTH = 16
POLL = 0.2


@dataclass(frozen=True, slots=True)
class Job:
    """A call that is ready to run: its place among the calls, its tool and its keys in the journal."""

    place: int
    call: ToolCall
    tool: Tool
    arguments: dict[str, Any]
    key: str
    idempotency_key: str


@dataclass(frozen=True, slots=True)
class Running:
    """A job on a thread of its own, and the `time.monotonic()` at which nobody waits any longer."""

    job: Job
    give_up_at: float | None


@dataclass(slots=True)
class Act:
    """One act: calls in, results out, in the calls' order."""

    context: ExecutionContext
    tools: Mapping[str, Tool]
    scope: RunScope
    hooks: Hooks
    keys: Callable[[int, ToolCall], str]

    def run(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """A result for each call. A `RunSignal` passes through after what was done is recorded."""
        results: dict[int, ToolResult] = {}
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
        return [results[place] for place in range(len(calls))]

    def _prepare(self, place: int, call: ToolCall) -> Job | ToolResult:
        tool = self.tools.get(call.name)
        if tool is None:
            known = ", ".join(self.tools) or "none"
            return failure(call, f"There is no tool {call.name!r}. The tools are: {known}.")
        if call.invalid is not None:
            broken = cut(call.invalid, 500)
            return failure(
                call, f"The arguments of {call.name} are not a JSON object; it was not run: {broken}"
            )
        key = self.keys(place, call)
        recorded = self.scope.journal.recall(key)
        if recorded is not None:
            return ToolResult.model_validate(recorded.result)
        try:
            arguments = tool.parameters.validate(call.arguments)
        except ValidationError as exc:
            return failure(call, f"Invalid arguments for {call.name}: {explain(exc)}")
        prefix = self.scope.journal.scope or self.context.execution_id
        return Job(place, call, tool, arguments, key, f"{prefix}:{key}")

    def _single(self, job: Job, results: dict[int, ToolResult]) -> None:
        if job.tool.timeout is not None and not job.tool.is_async:
            self._threaded(deque([job]), results)
            return
        answered = self._begin(job)
        results[job.place] = self._finish(job, answered or self._call(job, None))

    def _threaded(self, jobs: deque[Job], results: dict[int, ToolResult]) -> None:
        running: dict[Future[ToolResult], Running] = {}
        signal: RunSignal | None = None
        while running or (jobs and signal is None):
            try:
                while jobs and len(running) < WIDTH and signal is None:
                    self._start(jobs.popleft(), running, results)
            except RunSignal as stop:
                signal = stop
            signal = self._collect(running, results) or signal
        if signal is not None:
            raise signal

    def _start(
        self, job: Job, running: dict[Future[ToolResult], Running], results: dict[int, ToolResult]
    ) -> None:
        answered = self._begin(job)
        if answered is not None:
            results[job.place] = self._finish(job, answered)
            return
        timeout = None if job.tool.is_async else job.tool.timeout
        give_up_at = None if timeout is None else time.monotonic() + timeout
        future = on_thread(lambda: self._call(job, give_up_at), f"tool-{job.call.name}")
        running[future] = Running(job, give_up_at)

    def _collect(
        self, running: dict[Future[ToolResult], Running], results: dict[int, ToolResult]
    ) -> RunSignal | None:
        """Wait for the next jobs to end or run out of time; return the signal that one of them raised."""
        if not running:
            return None
        now = time.monotonic()
        waits = [one.give_up_at - now for one in running.values() if one.give_up_at is not None]
        wait(running, timeout=max(0.0, min([POLL, *waits])), return_when=FIRST_COMPLETED)
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
                results[one.job.place] = self._finish(one.job, timed_out(one.job))
        return (self._released() if running else None) or signal

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
        if self.hooks.before_tool is not None:
            answer = self.hooks.before_tool(self.context, job.call)
            if answer is not None:
                return answer if isinstance(answer, ToolResult) else success(job.call, answer)
        if job.tool.effect is not Effect.READ:
            self.scope.journal.intend(job.key, job.tool.effect, job.idempotency_key)
        return None

    def _finish(self, job: Job, result: ToolResult) -> ToolResult:
        if self.hooks.after_tool is not None:
            result = self.hooks.after_tool(self.context, job.call, result) or result
        self.scope.journal.record(job.key, result.model_dump(mode="json"), [])
        return result

    def _call(self, job: Job, give_up_at: float | None) -> ToolResult:
        """The edge to a tool's code: whatever it does becomes a result; only signals pass."""
        tries = job.tool.conduct.retries + 1
        while True:
            tries -= 1
            try:
                return success(job.call, self._invoke(job, give_up_at))
            except (Exception, SystemExit, GeneratorExit) as exc:
                result = failure(job.call, exc)
            if tries <= 0:
                return result

    def _invoke(self, job: Job, give_up_at: float | None) -> Any:
        timeout = job.tool.timeout
        if give_up_at is None and timeout is not None:
            give_up_at = time.monotonic() + timeout
        info = ToolCallInfo(
            job.call.tool_call_id,
            job.idempotency_key,
            _earliest(give_up_at, self.scope.deadline),
            self.scope.is_cancelled,
        )
        hidden = fill(job.tool.injected, self.context, info, self.scope.resources)
        value = job.tool.invoke({**job.arguments, **hidden})
        if inspect.iscoroutine(value):
            from agency.agent.background import run

            return run(value, timeout=timeout, cancelled=self.scope.is_cancelled)
        return value


def success(call: ToolCall, value: Any) -> ToolResult:
    return ToolResult(
        tool_call_id=call.tool_call_id, name=call.name, status="success", content=to_payload(value)
    )


def failure(call: ToolCall, problem: BaseException | str) -> ToolResult:
    text = problem if isinstance(problem, str) else describe_error(problem)
    return ToolResult(tool_call_id=call.tool_call_id, name=call.name, status="error", content=text)


def timed_out(job: Job) -> ToolResult:
    return failure(job.call, f"{job.call.name} gave no result within {job.tool.timeout:g} seconds")


def on_thread(work: Callable[[], ToolResult], name: str) -> Future[ToolResult]:
    """Run `work` on a daemon thread of its own, with the caller's context variables."""
    future: Future[ToolResult] = Future()
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

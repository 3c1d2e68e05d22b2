"""One tool call at work: what is needed to run it, the edge to the tool's code, and what came of it.

Runs on any thread, and so touches neither journal nor hooks.
"""

import inspect
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agency.agent.context import ExecutionContext
from agency.agent.events import ToolCall, ToolResult
from agency.agent.injection import ToolCallInfo, fill
from agency.agent.inner import InnerRun
from agency.agent.journal import RunScope
from agency.agent.payloads import Body, taken_in
from agency.agent.result import AgentResult, RunStatus
from agency.agent.tally import Tally, counting
from agency.agent.text import describe_error, to_payload
from agency.agent.tools import Tool
from agency.errors import RunSignal

Outcome = ToolResult | AgentResult
"""What came of a call: a result, or how the run inside it stands, which waits for a person or a model."""


@dataclass(slots=True)
class Job:
    """A call that is ready to run: its place among the calls, its tool and its keys in the journal.

    `resources` are filled into hidden parameters; `inner` is the run of another agent that the call
    stands for. `whole` is the result as it was before it was cut, if it is to be kept. `tally` is what the
    tool asked of models.
    """

    place: int
    call: ToolCall
    tool: Tool
    arguments: dict[str, Any]
    key: str
    context: ExecutionContext
    scope: RunScope
    resources: Mapping[type, Any]
    inner: InnerRun | None = None
    whole: Body | None = None
    tally: Tally = field(default_factory=Tally)

    @property
    def idempotency_key(self) -> str:
        return full_key(self.scope, self.context, self.key)

    def work(self, give_up_at: float | None = None) -> Outcome:
        """The edge to a tool's code: whatever it does becomes a result; only signals and Ctrl-C pass.

        `give_up_at` is the `time.monotonic()` at which nobody waits any longer. A fault of the run that a
        run inside the call met (its journal is gone) is no failure of the tool.
        """
        tries = self.tool.conduct.retries + 1
        while True:
            tries -= 1
            try:
                with counting(self.tally):
                    return self._try(give_up_at)
            except (RunSignal, KeyboardInterrupt):
                raise
            except BaseException as exc:
                if self.inner is not None and self.inner.journal.broken is not None:
                    raise self.inner.journal.broken from None
                result = failure(self.call, exc)
            late = give_up_at is not None and time.monotonic() >= give_up_at
            if tries <= 0 or late or self.scope.is_cancelled():
                return result

    def _try(self, give_up_at: float | None) -> Outcome:
        if self.inner is not None:
            info = self._info(give_up_at)
            return outcome_of(self.call, self.inner.go(lambda: self._value(give_up_at), info))
        value = self._value(give_up_at)
        if inspect.iscoroutine(value):
            from agency.agent.background import run

            value = run(value, timeout=self.tool.timeout, cancelled=self.scope.is_cancelled)
        content, self.whole = taken_in(value, self.scope.payloads)
        return _given(self.call, content)

    def _value(self, give_up_at: float | None) -> Any:
        """What the tool's function returns."""
        if not self.tool.injected:
            return self.tool.invoke(self.arguments)
        hidden = fill(self.tool.injected, self.context, self._info(give_up_at), self.resources)
        return self.tool.invoke({**self.arguments, **hidden})

    def _info(self, give_up_at: float | None) -> ToolCallInfo:
        timeout = self.tool.timeout
        if give_up_at is None and timeout is not None:
            give_up_at = time.monotonic() + timeout
        moments = [moment for moment in (give_up_at, self.scope.deadline) if moment is not None]
        return ToolCallInfo(
            self.call.tool_call_id,
            self.idempotency_key,
            min(moments, default=None),
            self.scope.is_cancelled,
        )


def full_key(scope: RunScope, context: ExecutionContext, key: str) -> str:
    """A call's key in the journal with the scope: the same for the same call in every process."""
    return f"{scope.journal.scope or context.execution_id}:{key}"


def success(call: ToolCall, value: Any) -> ToolResult:
    return _given(call, to_payload(value))


def _given(call: ToolCall, content: Any) -> ToolResult:
    return ToolResult(tool_call_id=call.tool_call_id, name=call.name, status="success", content=content)


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

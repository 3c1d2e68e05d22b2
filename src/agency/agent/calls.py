"""The open calls of a step: which may run, which wait for a person, which a limit or a person refused."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from agency.agent.confirmation import Confirmation
from agency.agent.events import Event, ToolCall, ToolResult, Usage
from agency.agent.record import Record
from agency.agent.tool_schema import explain
from agency.errors import InvalidInput

if TYPE_CHECKING:
    from agency.agent.agent import Agent


@dataclass(slots=True)
class Settled:
    """Where the calls of a step stand: those that still wait for a person, and the limit that was reached."""

    waiting: list[ToolCall] = field(default_factory=list[ToolCall])
    limit: str | None = None


@dataclass(slots=True)
class OpenCalls:
    """The calls without a result; `decisions` are a person's answers by call id."""

    agent: "Agent"
    record: Record
    decisions: dict[str, Confirmation]

    def settle(self) -> Settled:
        """Run and record what may run, until every call has a result or waits for a person."""
        settled = Settled()
        while True:
            calls = list(self.record.history.open_calls.values())
            settled.waiting = self.waiting()
            ready = [call for call in calls if not any(call is one for one in settled.waiting)]
            if not ready:
                return settled
            refused = self._over_limit(ready)
            settled.limit = next(iter(refused.values()), settled.limit)
            key = self._results_key()
            if self.record.replay(key) is None:
                self.record.write(key, self._run(ready, refused))

    def waiting(self) -> list[ToolCall]:
        """The calls that need a person and have no decision yet."""
        return [call for call in self.confirmable() if call.tool_call_id not in self.decisions]

    def confirmable(self) -> list[ToolCall]:
        """The calls that need a person, decided or not."""
        tools = self.agent.tools_by_name
        found: list[ToolCall] = []
        for call in self.record.history.open_calls.values():
            tool = tools.get(call.name)
            if tool is not None and call.invalid is None and tool.needs_confirmation(call.arguments):
                found.append(call)
        return found

    def check_decisions(self) -> None:
        """Refuse a decision on a call that is not open, and edits that do not fit the tool."""
        for decision in self.decisions.values():
            call = self.record.history.open_calls.get(decision.tool_call_id)
            if call is None:
                raise InvalidInput(f"confirmation for {decision.tool_call_id!r}: no such call is pending")
            tool = self.agent.tools_by_name.get(call.name)
            if tool is not None and decision.approved and decision.arguments is not None:
                try:
                    tool.parameters.validate(decision.arguments)
                except ValidationError as exc:
                    raise InvalidInput(f"confirmation for {call.tool_call_id!r}: {explain(exc)}") from exc

    def _run(self, calls: list[ToolCall], refused: dict[str, str]) -> Event:
        """The event with the results of `calls`, those that a limit or a person refused included."""
        done = {call.tool_call_id: _refusal(call, why) for call, why in self._refusals(calls, refused)}
        run = [self._effective(call) for call in calls if call.tool_call_id not in done]
        for result in self.agent.act(self.record.context, run):
            done[result.tool_call_id] = result
        edits = {call.tool_call_id: call.arguments for call in run if not any(call is one for one in calls)}
        more: dict[str, Any] = {"call": {"effective_arguments": edits}} if edits else {}
        results = [done[call.tool_call_id] for call in calls]
        return self.record.event(results, usage=Usage(tool_calls=len(run)), **more)

    def _refusals(self, calls: list[ToolCall], refused: dict[str, str]) -> Iterable[tuple[ToolCall, str]]:
        for call in calls:
            decision = self.decisions.get(call.tool_call_id)
            if call.tool_call_id in refused:
                yield call, f"not run: the limit {refused[call.tool_call_id]} was reached"
            elif decision is not None and not decision.approved:
                yield call, f"A person rejected this call{f': {decision.reason}' if decision.reason else '.'}"

    def _effective(self, call: ToolCall) -> ToolCall:
        decision = self.decisions.get(call.tool_call_id)
        if decision is None or decision.arguments is None or decision.arguments == call.arguments:
            return call
        return call.model_copy(update={"arguments": decision.arguments})

    def _over_limit(self, calls: list[ToolCall]) -> dict[str, str]:
        limits, history = self.agent.limits, self.record.history
        refused: dict[str, str] = {}
        for ahead, call in enumerate(calls if limits is not None else ()):
            same = history.times_called(call)
            reason = limits and limits.refuses_call(history, ahead - len(refused), same)
            if reason:
                refused[call.tool_call_id] = reason
        return refused

    def _results_key(self) -> str:
        """One results event a step, numbered from the second on where a person was asked in between."""
        seen = self.record.history.result_events
        return self.record.key("results" if not seen else f"results:{seen + 1}")


def _refusal(call: ToolCall, why: str) -> ToolResult:
    return ToolResult(tool_call_id=call.tool_call_id, name=call.name, status="error", content=why)

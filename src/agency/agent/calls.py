"""The open calls of a step: which may run, which wait for a person, which a limit or a person refused."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from agency.agent.agent_tool import AgentTool
from agency.agent.events import ToolCall, ToolResult, Usage
from agency.agent.hooks import Hooks
from agency.agent.inner import Pauses, has_begun, inner_context, qualified, restore
from agency.agent.journal import NullJournal
from agency.agent.record import Record
from agency.agent.result import AgentResult, Asked, RunStatus
from agency.agent.tool_schema import explain
from agency.agent.tools import Tool
from agency.errors import InvalidInput

if TYPE_CHECKING:
    from agency.agent.agent import Agent
    from agency.agent.confirmation import Confirmation


ANY_ANSWER: dict[str, Any] = {"type": ["string", "number", "boolean", "array", "object"]}


@dataclass(slots=True)
class Settled:
    """Where the calls of a step stand: those that still wait for a person, and the limit that was reached.

    `reason` says what a person is wanted for; `failed` is a run inside a call whose model cannot be had.
    """

    waiting: list[Asked]
    limit: str | None = None
    reason: str = "confirmation"
    failed: AgentResult | None = None


class OpenCalls:
    """The calls without a result, and what is known of those that pause."""

    def __init__(self, agent: "Agent", record: Record, pauses: Pauses) -> None:
        self.agent = agent
        self.record = record
        self.pauses = pauses

    def settle(self) -> Settled:
        """Run and record what may run, until every call has a result or waits."""
        settled = Settled([])
        history = self.record.history
        while history.open_calls:
            ready = self._ready()
            if not ready:
                self._pause(settled)
                break
            refused = self._over_limit(ready)
            settled.limit = next(iter(refused.values()), settled.limit)
            key = self._results_key()
            try:
                if not self._replay(key):
                    self._run(key, ready, refused)
            finally:
                if (shared := self.agent.scope.shared) is not None:
                    shared.end_tool_calls(len(ready) - len(refused))
        return settled

    def _ready(self) -> list[ToolCall]:
        """The open calls that wait for nobody."""
        open_calls, undecided = self.record.history.open_calls, self._undecided()
        if not undecided and not self.pauses.held:
            return list(open_calls.values())
        stuck = {*self.pauses.held, *(call.tool_call_id for call in undecided)}
        return [call for identity, call in open_calls.items() if identity not in stuck]

    def waiting(self) -> list[ToolCall]:
        """The calls that need a person and have no decision yet, those of runs inside calls included."""
        found = self._undecided()
        for call, _ in self._begun():
            inside = self._inside(call).history.open_calls.values()
            named = (qualified(call, one) for one in inside)
            found += [one for one in named if one.tool_call_id not in self.pauses.decisions]
        return found

    def decided(self) -> list[ToolCall]:
        """The open calls on which, or in the runs inside which, there is a decision."""
        keys = [key.split("/")[0] for key in self.pauses.decisions]
        return [call for identity, call in self.record.history.open_calls.items() if identity in keys]

    def paused(self) -> bool:
        """Whether a call is open because a person or a run inside it is at work on it; else it dangles."""
        if not self.record.history.open_calls:
            return False
        return any(True for _ in self._begun()) or any(True for _ in self._confirmable())

    def check_decisions(self) -> None:
        """Refuse a decision on a call that is not open or of another kind, and edits that do not fit."""
        for decision in self.pauses.decisions.values():
            self._check(decision)

    def _undecided(self) -> list[ToolCall]:
        if not self.agent.may_ask:
            return []
        decisions = self.pauses.decisions
        return [call for call in self._confirmable() if call.tool_call_id not in decisions]

    def _confirmable(self) -> Iterable[ToolCall]:
        """The calls that need a person before they begin, decided or not. Wrong arguments ask nobody."""
        tools = self.agent.tools_by_name
        for call in self.record.history.open_calls.values():
            tool = tools.get(call.name)
            if tool is None or call.invalid is not None or not self._asks(tool, call):
                continue
            if _fits(tool, call) and not self._has_begun(tool, call):
                yield call

    def _asks(self, tool: Tool, call: ToolCall) -> bool:
        if not tool.needs_confirmation(call.arguments):
            return False
        return tool.asks_person or not self.agent.scope.is_allowed(tool.name)

    def _begun(self) -> Iterable[tuple[ToolCall, AgentTool]]:
        tools = self.agent.tools_by_name
        for call in self.record.history.open_calls.values():
            tool = tools.get(call.name)
            if isinstance(tool, AgentTool) and self._has_begun(tool, call):
                yield call, tool

    def _has_begun(self, tool: Tool, call: ToolCall) -> bool:
        return isinstance(tool, AgentTool) and has_begun(self.record.context, call)

    def _inside(self, call: ToolCall) -> Record:
        """The record of the run inside a call, to read from."""
        return Record(inner_context(self.record.context, call), self.agent.name, NullJournal(), Hooks())

    def _pause(self, settled: Settled) -> None:
        """Say what the step waits for, in the calls' order."""
        undecided = {call.tool_call_id for call in self._undecided()}
        reasons: set[str] = set()
        for call in self.record.history.open_calls.values():
            held = self.pauses.held.get(call.tool_call_id)
            if call.tool_call_id in undecided:
                asked = _asked(self.agent.tools_by_name[call.name], call)
                settled.waiting.append(asked)
                reasons.add("question" if asked.is_question else "confirmation")
            elif held is not None and held.status is RunStatus.INTERRUPTED:
                settled.waiting += [replace(one, call=qualified(call, one.call)) for one in held.asked]
                reasons.add(held.stop_reason)
            elif held is not None:
                settled.failed = held
        if reasons == {"question"}:
            settled.reason = "question"

    # -- decisions -------------------------------------------------------------------------------

    def _check(self, decision: "Confirmation") -> None:
        call = self.record.history.open_calls.get(decision.tool_call_id)
        if call is not None:
            self._check_fit(call, decision)
            return
        for outer, tool in self._begun():
            if decision.tool_call_id.startswith(start := f"{outer.tool_call_id}/"):
                inner = replace(decision, tool_call_id=decision.tool_call_id.removeprefix(start))
                OpenCalls(tool.agent, self._inside(outer), Pauses())._check(inner)
                return
        raise InvalidInput(f"confirmation for {decision.tool_call_id!r}: no such call is pending")

    def _check_fit(self, call: ToolCall, decision: "Confirmation") -> None:
        tool = self.agent.tools_by_name.get(call.name)
        problem = None if tool is None else _misfit(tool, call, decision)
        if problem is not None:
            raise InvalidInput(f"confirmation for {call.tool_call_id!r}: {problem}")

    # -- running ---------------------------------------------------------------------------------

    def _replay(self, key: str) -> bool:
        """Take the recorded results of this step, if any, and before them what runs inside calls recorded."""
        recorded = self.record.journal.recall(key)
        if recorded is None or not recorded.events:
            return False
        if inner := (recorded.events[-1].call or {}).get("inner_keys"):
            restore(self.record, inner)
        self.record.take(recorded.events)
        return True

    def _run(self, key: str, calls: list[ToolCall], refused: dict[str, str]) -> None:
        """Run `calls` and write the event with their results, refusals included; a call may stay open."""
        done: dict[str, ToolResult] = {}
        run = calls
        if refused or self.pauses.decisions:
            done = {call.tool_call_id: _refusal(call, why) for call, why in self._refusals(calls, refused)}
            run = [self._effective(call) for call in calls if call.tool_call_id not in done]
        results = self.agent.act(self.record.context, run, self.pauses) if run else []
        ran = len(results)
        if done:
            done.update((result.tool_call_id, result) for result in results)
            results = [done[call.tool_call_id] for call in calls if call.tool_call_id in done]
        if results:
            more = self._more(calls, run)
            event = self.record.event(results, usage=self._usage(ran), call=more)
            self.record.write(key, event, tuple(self.pauses.ended))
            self.pauses.ended.clear()

    def _usage(self, ran: int) -> Usage:
        usage = Usage(tool_calls=ran)
        spent, self.pauses.spent = self.pauses.spent, None
        return usage if spent is None else usage + spent

    def _more(self, calls: list[ToolCall], run: list[ToolCall]) -> dict[str, Any] | None:
        """What is kept beside the results: decisions, edits, where runs inside calls are journaled."""
        pauses = self.pauses
        if not pauses.decisions and not pauses.inner_keys:
            return None
        kept: dict[str, Any] = {}
        decided = [call.tool_call_id for call in calls if call.tool_call_id in pauses.decisions]
        if decided:
            kept["decisions"] = {key: pauses.decisions[key].decision for key in decided}
        edited = [call for call in run if not any(call is one for one in calls)] if decided else []
        if edited:
            kept["effective_arguments"] = {call.tool_call_id: call.arguments for call in edited}
        if pauses.inner_keys:
            kept["inner_keys"] = [key for keys in pauses.inner_keys.values() for key in keys]
            pauses.inner_keys.clear()
        return kept or None

    def _refusals(self, calls: list[ToolCall], refused: dict[str, str]) -> Iterable[tuple[ToolCall, str]]:
        for call in calls:
            decision = self.pauses.decisions.get(call.tool_call_id)
            if call.tool_call_id in refused:
                yield call, f"not run: the limit {refused[call.tool_call_id]} was reached"
            elif decision is not None and not decision.approved:
                yield call, f"A person rejected this call{f': {decision.reason}' if decision.reason else '.'}"

    def _effective(self, call: ToolCall) -> ToolCall:
        decision = self.pauses.decisions.get(call.tool_call_id)
        if decision is None or decision.arguments is None or decision.arguments == call.arguments:
            return call
        return call.model_copy(update={"arguments": decision.arguments})

    def _over_limit(self, calls: list[ToolCall]) -> dict[str, str]:
        """The calls that a cap refuses, by it; the others count for the turn that this one is inside of."""
        limits, shared, history = self.agent.limits, self.agent.scope.shared, self.record.history
        refused: dict[str, str] = {}
        if limits is None and shared is None:
            return refused
        for ahead, call in enumerate(calls):
            reason = None
            if limits is not None:
                reason = limits.refuses_call(history, ahead - len(refused), history.times_called(call))
            if shared is not None:
                reason = reason or shared.take_tool_call()
            if reason:
                refused[call.tool_call_id] = reason
        return refused

    def _results_key(self) -> str:
        """One results event a step, numbered from the second on where a person was asked in between."""
        seen = self.record.history.result_events
        return self.record.key("results" if not seen else f"results:{seen + 1}")


def _asked(tool: Tool, call: ToolCall) -> Asked:
    if not tool.asks_person:
        return Asked(call, tool.parameters.schema)
    choices = call.arguments.get("choices")
    return Asked(call, {"enum": choices} if choices else ANY_ANSWER, is_question=True)


def _fits(tool: Tool, call: ToolCall) -> bool:
    try:
        tool.parameters.validate(call.arguments)
    except ValidationError:
        return False
    return True


def _misfit(tool: Tool, call: ToolCall, decision: "Confirmation") -> str | None:
    """What is wrong with a decision on a call, or `None`."""
    if tool.asks_person and decision.decision == "approve":
        return f"{call.name} is a question; decide 'answer' with answer=..., or 'reject'"
    if decision.decision == "answer":
        choices = call.arguments.get("choices")
        if not tool.asks_person:
            return f"{call.name} is no question; decide 'approve' or 'reject'"
        return f"the answer must be one of {choices}" if choices and decision.answer not in choices else None
    if decision.approved and decision.arguments is not None:
        try:
            tool.parameters.validate(decision.arguments)
        except ValidationError as exc:
            return explain(exc)
    return None


def _refusal(call: ToolCall, why: str) -> ToolResult:
    return ToolResult(tool_call_id=call.tool_call_id, name=call.name, status="error", content=why)

"""One turn at work: from a user message to a final answer, step by step, every fact through the journal.

Knows how an answer ends or continues a turn; `thinking` asks the model, `acting` runs the tools.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from agency.agent.confirmation import Confirmation
from agency.agent.context import ExecutionContext
from agency.agent.events import ContentItem, Event, EventError, Message, ToolCall, ToolResult, Usage
from agency.agent.history import USER, History, history_of
from agency.agent.llm import LlmRequest, LlmResponse
from agency.agent.output import FINAL_ANSWER, Accepted
from agency.agent.prompt import repairs
from agency.agent.result import AgentResult, RunStatus
from agency.agent.text import as_text
from agency.agent.thinking import Failure, ask
from agency.agent.tool_schema import explain
from agency.errors import InvalidInput

if TYPE_CHECKING:
    from agency.agent.agent import Agent

EMPTY_ANSWER = "Your last answer was empty. Answer the task, or call a tool."
CUT_ANSWER = "Your last answer was cut off before it said anything. Answer again, shorter."
UNREADABLE = "Your last answer could not be read. Answer again in the form that was asked for."
SKIPPED = "skipped: calls beside final_answer are not executed"


@dataclass(slots=True)
class Turn:
    """A run of an agent over a context; `decisions` are a person's answers by call id."""

    agent: "Agent"
    context: ExecutionContext
    decisions: dict[str, Confirmation] = field(default_factory=dict[str, Confirmation])
    history: History = field(init=False)

    def __post_init__(self) -> None:
        self.history = history_of(self.context)

    # -- the record ------------------------------------------------------------------------------

    def key(self, tail: str) -> str:
        """A journal key of this step."""
        return f"{self.history.turn}:{self.context.current_step}:{tail}"

    def settle(self, key: str, make: Callable[[], Event]) -> Event:
        """The event recorded under `key`, or else the one that `make` gives, recorded now."""
        recorded = self.agent.scope.journal.recall(key)
        if recorded is not None and recorded.events:
            for event in recorded.events:
                self.add(event)
            return recorded.events[-1]
        return self.record(key, make())

    def record(self, key: str, event: Event) -> Event:
        """Write an event: to the journal first, then to the context."""
        self.agent.scope.journal.record(key, None, [event])
        self.add(event)
        if self.agent.hooks.on_event is not None:
            self.agent.hooks.on_event(event)
        return event

    def add(self, event: Event) -> None:
        self.context.add_event(event)
        self.history.sync(self.context)

    def event(self, content: Sequence[ContentItem], author: str | None = None, **more: Any) -> Event:
        return Event(
            execution_id=self.context.execution_id,
            author=author or self.agent.name,
            content=list(content),
            step=self.context.current_step,
            **more,
        )

    # -- opening ---------------------------------------------------------------------------------

    def open(self, user_input: Sequence[ContentItem], discard_pending: bool) -> None:
        """Begin a new turn with what the user says; a finished context's answer is cleared first."""
        waiting = self.waiting(self.history.open_calls.values())
        if waiting and not discard_pending:
            names = ", ".join(f"{call.name} ({call.tool_call_id})" for call in waiting)
            raise InvalidInput(
                f"the context waits for a person's answer to {names}; pass confirmations=[...] for them, "
                "or discard_pending=True to drop the calls"
            )
        self.repair()
        self.context.final_result = None
        self.settle(f"{self.history.turn + 1}:user", lambda: self.event(user_input, USER))

    def reopen(self) -> None:
        """Go on with the open turn; a decision must belong to a call that is open, and its edits must fit."""
        if not self.context.events:
            raise InvalidInput("user_input is missing: a new context needs something to work on")
        for decision in self.decisions.values():
            call = self.history.open_calls.get(decision.tool_call_id)
            if call is None:
                raise InvalidInput(f"confirmation for {decision.tool_call_id!r}: no such call is pending")
            self.check_edit(call, decision)

    def check_edit(self, call: ToolCall, decision: Confirmation) -> None:
        tool = self.agent.tools_by_name.get(call.name)
        if tool is None or not decision.approved or decision.arguments is None:
            return
        try:
            tool.parameters.validate(decision.arguments)
        except ValidationError as exc:
            raise InvalidInput(f"confirmation for {call.tool_call_id!r}: {explain(exc)}") from exc

    def repair(self) -> None:
        """Answer calls that were left without a result, in the record and so in every later request."""
        if self.history.open_calls:
            self.settle(self.key("repair"), lambda: self.event(repairs(self.history)))

    # -- a step ----------------------------------------------------------------------------------

    def step(self) -> AgentResult | None:
        """One think-act cycle; the result when it ended the turn, else `None`."""
        self.history.sync(self.context)
        if self.waiting(self.history.open_calls.values(), decided=True):
            return self.act()
        self.repair()
        if (stop := self.spent()) is not None:
            return stop
        response = self.think()
        if isinstance(response, Failure):
            return self.fail(response)
        if response.finish_reason == "refusal":
            self.context.increment_step()
            return self.fail(Failure("model_refused", response.text or "the model refused to answer"))
        if response.tool_calls:
            return self.conclude(response) if self.concludes(response) else self.act()
        return self.answer(response)

    def spent(self) -> AgentResult | None:
        """The end of a turn that has no step or no means left for another model call."""
        if self.context.current_step - self.history.turn_step >= self.agent.max_steps:
            return self.result(RunStatus.MAX_STEPS, "max_steps")
        reached = self.agent.limits and self.agent.limits.reached(self.history)
        return self.result(RunStatus.LIMIT, reached) if reached else None

    def think(self) -> LlmResponse | Failure:
        """The model's answer to the context as it stands, recorded before anything is done with it."""
        key = self.key("model")
        recorded = self.agent.scope.journal.recall(key)
        if recorded is not None:
            event = self.settle(key, lambda: self.event([]))
            reason = (event.call or {}).get("finish_reason")
            return LlmResponse([] if event.error else list(event.content), event.usage, reason)
        asked = ask(self, self.request())
        if isinstance(asked, Failure):
            return asked
        self.record(key, asked.event)
        return asked.response

    def request(self) -> LlmRequest:
        """What the model is sent; on the last step it is asked for the answer, not for more calls."""
        agent, contract = self.agent, self.agent.contract
        request = LlmRequest(
            model=agent.model_name,
            instructions=list(agent.instructions),
            tools=list(agent.specs),
            settings=dict(agent.settings),
        )
        last = self.context.current_step - self.history.turn_step == agent.max_steps - 1
        native = contract is not None and agent.answers_natively
        if contract is not None and native:
            request.output_schema = contract.schema
        elif contract is not None:
            request.tools.append(contract.tool)
        if last and agent.max_steps > 1 and agent.specs:
            if contract is None or native:
                request.tool_choice = "none"
            else:
                request.tools = [contract.tool]
        return agent.request_builder.build(self.context, request)

    # -- answers ---------------------------------------------------------------------------------

    def answer(self, response: LlmResponse) -> AgentResult | None:
        """An answer without calls: final if it says something of the promised shape, else corrected."""
        text, contract = response.text, self.agent.contract
        cut = response.finish_reason == "length"
        if contract is not None and text.strip():
            read = contract.read_text(text)
            if isinstance(read, Accepted):
                return self.complete(read.value, "final_answer")
            way = "" if self.agent.answers_natively else " Call the tool final_answer."
            return self.correct(f"Your answer does not have the required shape: {read.problem}.{way}")
        if not text.strip():
            problem = UNREADABLE if response.finish_reason == "error" else EMPTY_ANSWER
            return self.correct(CUT_ANSWER if cut else problem)
        return self.complete(text, "length" if cut else "final_answer")

    def correct(self, problem: str) -> None:
        """Tell the model what was wrong; that costs a step."""
        message = Message(role="user", content=problem)
        self.settle(self.key("correction"), lambda: self.event([message]))
        self.context.increment_step()

    def concludes(self, response: LlmResponse) -> bool:
        has_contract = self.agent.contract is not None
        return has_contract and any(call.name == FINAL_ANSWER for call in response.tool_calls)

    def conclude(self, response: LlmResponse) -> AgentResult | None:
        """A response with `final_answer`: the first valid one is the answer, everything else is skipped."""
        accepted: Accepted | None = None
        results: list[ToolResult] = []
        for call in response.tool_calls:
            status, content = "error", SKIPPED
            if call.name == FINAL_ANSWER and accepted is None:
                read = self.agent.read_final(call)
                if isinstance(read, Accepted):
                    accepted, status, content = read, "success", "accepted"
                else:
                    content = f"Not accepted: {read.problem}. Call final_answer again."
            results.append(
                ToolResult.model_validate(
                    {
                        "tool_call_id": call.tool_call_id,
                        "name": call.name,
                        "status": status,
                        "content": content,
                    }
                )
            )
        self.settle(self.key("results"), lambda: self.event(results))
        if accepted is not None:
            return self.complete(accepted.value, "final_answer")
        self.context.increment_step()
        return None

    # -- tools -----------------------------------------------------------------------------------

    def act(self) -> AgentResult | None:
        """Run the open calls that may run; the turn waits for a person if some may not."""
        limit: str | None = None
        while True:
            calls = list(self.history.open_calls.values())
            waiting = self.waiting(calls)
            ready = [call for call in calls if not any(call is one for one in waiting)]
            if not ready:
                break
            refused = self.refused(ready)
            limit = next(iter(refused.values()), limit)
            self.settle(self.results_key(), lambda: self.run_calls(ready, refused))  # noqa: B023
        if waiting:
            return self.result(RunStatus.INTERRUPTED, "confirmation", pending=waiting)
        return self.after_act(limit)

    def after_act(self, limit: str | None) -> AgentResult | None:
        tools = self.agent.tools_by_name
        for result in self.history.step_results:
            tool = tools.get(result.name)
            if tool is not None and tool.return_direct and result.status == "success":
                return self.complete(as_text(result.content), "return_direct")
        if self.context.state:
            self.context.check_state()
        self.context.increment_step()
        return self.result(RunStatus.LIMIT, limit) if limit else None

    def run_calls(self, calls: list[ToolCall], refused: dict[str, str]) -> Event:
        """The event with the results of `calls`, those that a limit or a person refused included."""
        done: dict[str, ToolResult] = {}
        run: list[ToolCall] = []
        for call in calls:
            decision = self.decisions.get(call.tool_call_id)
            if call.tool_call_id in refused:
                reason = refused[call.tool_call_id]
                done[call.tool_call_id] = _refusal(call, f"not run: the limit {reason} was reached")
            elif decision is not None and not decision.approved:
                why = f": {decision.reason}" if decision.reason else "."
                done[call.tool_call_id] = _refusal(call, f"A person rejected this call{why}")
            else:
                run.append(_effective(call, decision))
        for result in self.agent.act(self.context, run):
            done[result.tool_call_id] = result
        results = [done[call.tool_call_id] for call in calls]
        edits = {call.tool_call_id: call.arguments for call in run if call not in calls}
        more: dict[str, Any] = {"call": {"effective_arguments": edits}} if edits else {}
        return self.event(results, usage=Usage(tool_calls=len(run)), **more)

    def refused(self, calls: list[ToolCall]) -> dict[str, str]:
        limits = self.agent.limits
        if limits is None:
            return {}
        refused: dict[str, str] = {}
        for call in calls:
            ahead = calls.index(call) - len(refused)
            reason = limits.refuses_call(self.history, ahead, self.history.times_called(call))
            if reason is not None:
                refused[call.tool_call_id] = reason
        return refused

    def place_of(self, place: int, call: ToolCall) -> int:
        """The ordinal of a call in its response, also where only some of the response's calls are run."""
        return self.history.ordinals.get(call.tool_call_id, place)

    def results_key(self) -> str:
        """One results event a step, numbered from the second on where a person was asked in between."""
        seen = self.history.result_events
        return self.key("results" if not seen else f"results:{seen + 1}")

    def waiting(self, calls: Any, decided: bool = False) -> list[ToolCall]:
        """The calls that need a person; with `decided` also those that a person has answered."""
        found: list[ToolCall] = []
        for call in calls:
            tool = self.agent.tools_by_name.get(call.name)
            if tool is None or call.invalid is not None or not tool.needs_confirmation(call.arguments):
                continue
            if decided or call.tool_call_id not in self.decisions:
                found.append(call)
        return found

    # -- the end ---------------------------------------------------------------------------------

    def complete(self, output: Any, reason: str) -> AgentResult:
        self.context.final_result = output
        self.context.increment_step()
        return self.result(RunStatus.COMPLETED, reason, output=output)

    def fail(self, failure: Failure) -> AgentResult:
        result = self.result(RunStatus.FAILED, failure.code)
        result.error = EventError(code=failure.code, message=failure.message)
        result.retry_after = failure.retry_after
        return result

    def result(
        self,
        status: RunStatus,
        reason: str,
        output: Any = None,
        pending: list[ToolCall] | None = None,
    ) -> AgentResult:
        return AgentResult(output, self.context, status, reason, self.history.usage, pending or [])


def _refusal(call: ToolCall, why: str) -> ToolResult:
    return ToolResult(tool_call_id=call.tool_call_id, name=call.name, status="error", content=why)


def _effective(call: ToolCall, decision: Confirmation | None) -> ToolCall:
    if decision is None or decision.arguments is None or decision.arguments == call.arguments:
        return call
    return call.model_copy(update={"arguments": decision.arguments})

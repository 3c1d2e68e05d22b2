"""One turn at work: from a user message to a final answer, step by step.

Knows how an answer ends or continues a turn. `record` keeps the events, `thinking` asks the model,
`calls` and `acting` run the tools.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agency.agent.calls import OpenCalls
from agency.agent.context import ExecutionContext
from agency.agent.events import SAID_BY, ContentItem, EventError, Message, ToolCall, ToolResult
from agency.agent.history import USER
from agency.agent.inner import Pauses
from agency.agent.llm import LlmRequest, LlmResponse
from agency.agent.output import FINAL_ANSWER, Accepted, read_call
from agency.agent.record import Record
from agency.agent.repair import INTERRUPTED, mended, unanswered
from agency.agent.result import AgentResult, RunStatus
from agency.agent.text import as_text
from agency.agent.thinking import Failure, ask
from agency.errors import InvalidInput

if TYPE_CHECKING:
    from agency.agent.agent import Agent
    from agency.agent.confirmation import Confirmation

EMPTY_ANSWER = "Your last answer was empty. Answer the task, or call a tool."
CUT_ANSWER = "Your last answer was cut off before it said anything. Answer again, shorter."
UNREADABLE = "Your last answer could not be read. Answer again in the form that was asked for."
REFUSED = "not run: the model refused to go on"
SKIPPED = "skipped: calls beside final_answer are not executed"
CHARACTERS = 4
"""Of a token, roughly."""


class Turn:
    """A run of an agent over a context; `decisions` are a person's answers by call id."""

    def __init__(
        self, agent: "Agent", context: ExecutionContext, decisions: dict[str, "Confirmation"] | None = None
    ) -> None:
        self.agent = agent
        self.context = context
        self.record = Record(context, agent.name, agent.scope.journal, agent.hooks)
        self.history = self.record.history
        self.calls = OpenCalls(agent, self.record, Pauses(decisions or {}))
        self._measured = self._characters = 0

    # -- opening ---------------------------------------------------------------------------------

    def open(self, user_input: Sequence[ContentItem], discard_pending: bool, said_by: str = "") -> None:
        """Begin a new turn with what the user says; a finished context's answer is cleared first."""
        waiting = self.calls.waiting()
        if waiting and not discard_pending:
            names = ", ".join(f"{call.name} ({call.tool_call_id})" for call in waiting)
            raise InvalidInput(
                f"the context waits for a person's answer to {names}; pass confirmations=[...] for them, "
                "or discard_pending=True to drop the calls"
            )
        if decided := self.calls.decided():
            raise InvalidInput(
                f"there is a decision on {decided[0].name} ({decided[0].tool_call_id}), which new user_input "
                "would drop; pass the confirmations in a run without user_input first"
            )
        self.repair()
        self.context.final_result = None
        call = {SAID_BY: said_by} if said_by else None
        key = f"{self.history.turn + 1}:user"
        self.record.settle(key, lambda: self.record.event(user_input, USER, call=call))

    def reopen(self) -> None:
        """Go on with the open turn, with the decisions on its pending calls."""
        if not self.context.events:
            raise InvalidInput("user_input is missing: a new context needs something to work on")
        self.calls.check_decisions()

    def repair(self, why: str = INTERRUPTED) -> None:
        """Answer calls that were left without a result, in the record and so in every later request."""
        if open_calls := self.history.open_calls:
            key = self.record.key("repair")
            self.record.settle(key, lambda: self.record.event(unanswered(open_calls.values(), why)))

    # -- a step ----------------------------------------------------------------------------------

    def step(self) -> AgentResult | None:
        """One think-act cycle; the result when it ended the turn, else `None`."""
        self.history.sync(self.context)
        if self.calls.paused():
            return self.act()
        self.repair()
        if (stop := self.spent()) is not None:
            return stop
        response = self.think_within_limits()
        if not isinstance(response, LlmResponse):
            return self.fail(response) if isinstance(response, Failure) else response
        if response.finish_reason == "refusal":
            self.repair(REFUSED)
            self.context.increment_step()
            return self.fail(Failure("model_refused", response.text or "the model refused to answer"))
        calls = response.tool_calls
        if not calls:
            return self.answer(response)
        ends = self.agent.contract is not None and any(call.name == FINAL_ANSWER for call in calls)
        return self.conclude(calls) if ends else self.act()

    def spent(self) -> AgentResult | None:
        """The end of a turn that has no step or no means left for another model call."""
        if self.steps_left() <= 0:
            return self.result(RunStatus.MAX_STEPS, "max_steps")
        reached = self.agent.limits and self.agent.limits.reached(self.history)
        return self.result(RunStatus.LIMIT, reached) if reached else None

    def steps_left(self) -> int:
        return self.agent.max_steps - (self.context.current_step - self.history.turn_step)

    def think_within_limits(self) -> LlmResponse | Failure | AgentResult:
        """`think`; inside a call of another turn, only as far as that one's limits leave room for it."""
        scope = self.agent.scope
        if scope.shared is None:
            return self.think()
        with scope.shared.model_call(self.size(), scope.checkpoint) as reached:
            return self.result(RunStatus.LIMIT, reached) if reached else self.think()

    def size(self) -> int:
        """About how many tokens a request takes, by its characters."""
        contents = self.history.contents
        added = [len(item.__pydantic_serializer__.to_json(item)) for item in contents[self._measured :]]
        self._measured, self._characters = len(contents), self._characters + sum(added)
        return (self._characters + sum(map(len, self.agent.instructions))) // CHARACTERS

    def think(self) -> LlmResponse | Failure:
        """The model's answer to the context as it stands, recorded before anything is done with it."""
        key = self.record.key("model")
        prepare = getattr(self.agent.request_builder, "prepare", None)
        if prepare is not None:
            prepare(self.agent, self.record)
        event = self.record.replay(key)
        if event is not None:
            reason = (event.call or {}).get("finish_reason")
            return LlmResponse([] if event.error else list(event.content), event.usage, reason)
        asked = ask(self.agent, self.record, self.request())
        if isinstance(asked, Failure):
            return asked
        self.record.write(key, asked.event)
        return asked.response

    def request(self) -> LlmRequest:
        """What the model is sent; on the last step it is asked for the answer, not for more calls."""
        agent, contract = self.agent, self.agent.contract
        request = LlmRequest(
            model=agent.model_name,
            instructions=[*agent.instructions],
            contents=[],
            tools=[*agent.specs],
            settings={**agent.settings},
            kept=self.history.kept,
        )
        last = self.steps_left() == 1 and agent.max_steps > 1 and bool(agent.specs)
        owed = not last and self.owes_calls()
        if owed or last:
            request.tool_choice = "required" if owed else "none"
        native = agent.answer_schema is not None and agent.answers_natively
        if contract is None or native:
            request.output_schema = agent.answer_schema if native else None
        elif last:
            request.tools, request.tool_choice = [contract.tool], "auto"
        elif not owed:
            request.tools = [*agent.specs, contract.tool]
        request = agent.request_builder.build(self.context, request)
        if request.selection is None:
            request.contents = mended(request.contents)
        return request

    def owes_calls(self) -> bool:
        """Whether a tool that must be called before the answer has not been called in this turn."""
        first = self.agent.first_tools
        return bool(first) and not first & self.agent.tools_by_name.keys() <= self.history.called

    # -- answers ---------------------------------------------------------------------------------

    def answer(self, response: LlmResponse) -> AgentResult | None:
        """An answer without calls: final if it says something of the promised shape, else corrected."""
        text, contract = response.text, self.agent.contract
        cut = response.finish_reason == "length"
        if not text.strip():
            problem = UNREADABLE if response.finish_reason == "error" else EMPTY_ANSWER
            return self.correct(CUT_ANSWER if cut else problem)
        if contract is None:
            return self.complete(text, "length" if cut else "final_answer")
        read = contract.read_text(text)
        if isinstance(read, Accepted):
            return self.complete(read.value, "final_answer")
        way = "" if self.agent.answers_natively else f" Call the tool {FINAL_ANSWER}."
        return self.correct(f"Your answer does not have the required shape: {read.problem}.{way}")

    def correct(self, problem: str) -> None:
        """Tell the model what was wrong; that costs a step."""
        message = Message(role="user", content=problem)
        self.record.settle(self.record.key("correction"), lambda: self.record.event([message]))
        self.context.increment_step()

    def conclude(self, calls: list[ToolCall]) -> AgentResult | None:
        """A response with `final_answer`: the first valid one is the answer, everything else is skipped."""
        accepted: Accepted | None = None
        results: list[ToolResult] = []
        for call in calls:
            status, content = "error", SKIPPED
            if call.name == FINAL_ANSWER and accepted is None and self.agent.contract is not None:
                read = read_call(self.agent.contract, call)
                if isinstance(read, Accepted):
                    accepted, status, content = read, "success", "accepted"
                else:
                    content = f"Not accepted: {read.problem}. Call {FINAL_ANSWER} again."
            result = {
                "tool_call_id": call.tool_call_id,
                "name": call.name,
                "status": status,
                "content": content,
            }
            results.append(ToolResult.model_validate(result))
        self.record.settle(self.record.key("results"), lambda: self.record.event(results))
        if accepted is not None:
            return self.complete(accepted.value, "final_answer")
        self.context.increment_step()
        return None

    def act(self) -> AgentResult | None:
        """Run the open calls that may run; the turn waits for a person if some may not."""
        settled = self.calls.settle()
        if settled.waiting:
            result = self.result(RunStatus.INTERRUPTED, settled.reason)
            result.pending, result.asked = [one.call for one in settled.waiting], settled.waiting
            return result
        if settled.failed is not None and (error := settled.failed.error) is not None:
            return self.fail(Failure(error.code, error.message, settled.failed.retry_after))
        if self.context.state:
            self.context.check_state()
        tools = self.agent.tools_by_name
        for result in self.history.step_results:
            tool = tools.get(result.name)
            if tool is not None and tool.return_direct and result.status == "success":
                return self.complete(as_text(result.content), "return_direct")
        self.context.increment_step()
        return self.result(RunStatus.LIMIT, settled.limit) if settled.limit else None

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

    def result(self, status: RunStatus, reason: str, output: Any = None) -> AgentResult:
        return AgentResult(output, self.context, status, reason, self.history.usage)

"""The agent: a name, a model, instructions and tools, and the think-act loop over an execution context.

Every fact goes through the run's journal before it counts. Keys, within the journal's scope:
`turn:user`, `turn:step:model`, `turn:step:ordinal:tool:hash` for each tool call and
`turn:step:results`; a run over a filled journal (and the context as it was before the turn) replays
what is recorded and goes on from there. The core knows no database, provider or scheduler.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from agency.agent.acting import Act
from agency.agent.agent_tool import agent_tool
from agency.agent.context import ExecutionContext
from agency.agent.events import ContentItem, FilePart, Message, ToolCall, ToolResult
from agency.agent.history import USER
from agency.agent.hooks import Hooks
from agency.agent.inner import Pauses
from agency.agent.journal import RunScope
from agency.agent.limits import Limits
from agency.agent.llm import LlmClient, LlmRequest, LlmResponse, OutputSchema
from agency.agent.named import as_client
from agency.agent.output import FINAL_ANSWER, OutputContract
from agency.agent.prompt import EverythingBuilder, RequestBuilder
from agency.agent.record import Record
from agency.agent.result import AgentResult
from agency.agent.sources import opened, split
from agency.agent.stopping import stop_signal
from agency.agent.text import clean
from agency.agent.thinking import Failure
from agency.agent.tool_schema import ToolDefinitionError
from agency.agent.tools import Conduct, Tool
from agency.agent.toolset import resolve_tools
from agency.agent.turn import Turn
from agency.errors import ConfigurationError, InvalidInput, ToolsUnavailable

if TYPE_CHECKING:
    from agency.agent.confirmation import Confirmation


class Agent:
    """Thinks with a model and acts with tools until it has an answer.

    `model` is a client or a `"provider:model"`; `output_type` a Pydantic model (or any type that Pydantic
    can describe) that the final answer must be; `max_steps` caps the model calls of one turn; `settings`
    go to the provider (`max_tokens`, `temperature`); `answer_schema` asks a provider that can to hold the
    final answer to a shape that somebody else checks; `scope` is what a runtime puts around the run.
    `first_tools` names tools that each turn must call before its answer: small models would rather guess.
    One agent serves many contexts at once, also from several threads.
    """

    def __init__(
        self,
        name: str,
        model: LlmClient | str,
        instructions: str | Sequence[str] = "",
        tools: Sequence[Any] = (),
        max_steps: int = 10,
        output_type: Any = None,
        limits: Limits | None = None,
        request_builder: RequestBuilder | None = None,
        hooks: Hooks | None = None,
        scope: RunScope | None = None,
        model_retries: int = 3,
        settings: dict[str, Any] | None = None,
        tool_settings: dict[str, dict[str, Any]] | None = None,
        data_set: Any = None,
        answer_schema: OutputSchema | None = None,
        first_tools: Sequence[str] = (),
    ) -> None:
        _check(name, max_steps)
        self.name = name
        self.llm = as_client(model)
        self.instructions = [instructions] if isinstance(instructions, str) else list(instructions)
        self.instructions = [text for text in self.instructions if text]
        declared, self.sources = split(tools)
        self._hold(resolve_tools(declared, self.llm, data_set, tool_settings))
        self.first_tools = _first(first_tools, name, self)
        self.max_steps = max_steps
        self.contract = None if output_type is None else OutputContract(output_type)
        self.answer_schema = answer_schema if self.contract is None else self.contract.schema
        self.limits = limits
        self.request_builder: RequestBuilder = request_builder or EverythingBuilder()
        self.hooks = hooks or Hooks()
        self.scope = scope or RunScope()
        self.model_retries = model_retries
        self.settings = settings or {}
        if self.contract is not None and FINAL_ANSWER in self.tools_by_name:
            raise ToolDefinitionError(
                f"a tool is called {FINAL_ANSWER!r}, which output_type needs; rename it"
            )

    def __repr__(self) -> str:
        return f"<Agent {self.name}>"

    def with_tools(self, tools: list[Tool]) -> "Agent":
        """The same agent with other tools."""
        agent = copy(self)
        agent._hold(tools)
        return agent

    def _hold(self, tools: list[Tool]) -> None:
        self.tools = tools
        self.tools_by_name = {tool.name: tool for tool in tools}
        self.specs = [tool.spec for tool in tools]
        self.may_ask = any(tool.may_ask for tool in tools)

    @property
    def model_name(self) -> str | None:
        return getattr(self.llm, "model_name", None)

    @property
    def answers_natively(self) -> bool:
        """Whether the provider itself holds the final answer to the output schema."""
        return getattr(self.llm, "output_mode", "tool") == "native"

    def run(
        self,
        user_input: str | ContentItem | Sequence[ContentItem] | None = None,
        context: ExecutionContext | None = None,
        confirmations: Sequence["Confirmation"] | None = None,
        *,
        discard_pending: bool = False,
        said_by: str = "",
    ) -> AgentResult:
        """Work on `user_input` until there is an answer, a limit, a failure or a person to ask.

        With a `context` the conversation goes on; without `user_input` its open turn does, with the
        `confirmations` that a person gave for its pending calls. Bad input raises `InvalidInput`, and nothing
        is run. `said_by` goes on record where the input is not the user's own, such as a supervisor's.
        """
        context = ExecutionContext() if context is None else context
        decisions = _decisions(confirmations or ())
        try:
            with self.connected() as agent:
                turn = Turn(agent, context, decisions)
                if user_input is not None:
                    turn.open(_content(user_input), discard_pending, said_by)
                else:
                    turn.reopen()
                while (result := turn.step()) is None:
                    continue
                return result
        except ToolsUnavailable as exc:
            return Turn(self, context).fail(Failure("tools_unavailable", str(exc)))

    def step(self, context: ExecutionContext) -> AgentResult | None:
        """One think-act cycle: ask, record, run the called tools, record. A result if that ended the turn."""
        with self.connected() as agent:
            return Turn(agent, context).step()

    @contextmanager
    def connected(self) -> Generator["Agent"]:
        """The agent with the tools of its sources (MCP servers), whose connections last as long as the block.

        `run` does this itself; use it to take single steps, or several runs, over one connection.
        """
        if not self.sources:
            yield self
            return
        token = stop_signal.set(self.scope.is_cancelled)
        try:
            with opened(self.sources) as found:
                agent = self.with_tools(resolve_tools([*self.tools, *found]))
                agent.sources = []
                yield agent
        finally:
            stop_signal.reset(token)

    def think(self, request: LlmRequest) -> LlmResponse:
        """The model's answer to one request."""
        return self.llm.generate(request)

    def act(
        self, context: ExecutionContext, calls: Sequence[ToolCall], pauses: Pauses | None = None
    ) -> list[ToolResult]:
        """Run tool calls and return their results in the same order.

        Each is journaled as it ends, but for reads and the call that ends last: whoever called this records
        all results next.

        `pauses` holds what people decided on the calls; it then says which calls of other agents have no
        result yet, since their runs wait for a person or a model.
        """
        record = Record(context, self.name, self.scope.journal, self.hooks)
        return Act(self, record, pauses or Pauses()).run(calls)

    def as_tool(self, description: str, *, name: str | None = None, conduct: Conduct | None = None) -> Tool:
        """This agent as a tool of another, which gives it a task in words and gets its answer.

        `description` tells the other agent's model what this one is good for. The calls' events, usage and
        pending questions are part of the calling run; see `BaseAgentTool`.
        """
        return agent_tool(self, description, name, conduct)


def _content(user_input: str | ContentItem | Sequence[ContentItem]) -> list[ContentItem]:
    if isinstance(user_input, str):
        user_input = [Message(role="user", content=user_input)]
    items: list[Any] = [user_input] if isinstance(user_input, BaseModel) else list(user_input)
    for item in items:
        if not isinstance(item, Message | FilePart):
            said = getattr(item, "type", type(item).__name__)
            raise InvalidInput(f"user_input holds a {said}; give text, messages or files")
    if not any(isinstance(item, FilePart) or item.content.strip() for item in items):
        raise InvalidInput("user_input is empty; say what to work on")
    return [
        Message(role=item.role, content=clean(item.content)) if isinstance(item, Message) else item
        for item in items
    ]


def _decisions(confirmations: Sequence["Confirmation"]) -> dict[str, "Confirmation"]:
    """The decisions by call id; two on one call cannot both be meant."""
    decisions: dict[str, Confirmation] = {}
    for one in confirmations:
        if decisions.setdefault(one.tool_call_id, one) != one:
            raise InvalidInput(f"confirmations: two different decisions on {one.tool_call_id!r}")
    return decisions


def _first(wanted: Sequence[str], name: str, agent: Agent) -> frozenset[str]:
    """The names in `first_tools`; those of a source's tools are known only when it is connected."""
    if isinstance(wanted, str):
        raise ConfigurationError(f"agent {name!r}: first_tools is {wanted!r}; give a list of names")
    unknown = [one for one in wanted if one not in agent.tools_by_name]
    if unknown and not agent.sources:
        known = ", ".join(agent.tools_by_name) or "none"
        raise ConfigurationError(f"agent {name!r}: first_tools names {unknown[0]!r}; its tools are: {known}")
    return frozenset(wanted)


def _check(name: str, max_steps: int) -> None:
    if not name or name == USER:
        raise ConfigurationError(f"an agent cannot be called {name!r}; the name marks its events")
    given: Any = max_steps
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise ConfigurationError(f"agent {name!r}: max_steps is {given!r}; give a whole number from 1")

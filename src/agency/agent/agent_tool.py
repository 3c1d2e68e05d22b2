"""An agent as a tool of another: the model of the calling agent gives it a task and gets its answer.

Says what such a tool is; `inner` and `acting` run it.
"""

import re
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel

from agency.agent.llm import LlmClient
from agency.agent.tool_classes import BaseLLMTool
from agency.agent.tool_schema import Docs, Parameters, ToolDefinitionError, parameters_of, read_docs
from agency.agent.tools import Conduct, Tool
from agency.enums import Effect

if TYPE_CHECKING:
    from agency.agent.agent import Agent
    from agency.agent.declared import BaseAgent

_building: ContextVar[tuple[type[Any], ...]] = ContextVar("_building", default=())
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]+")


class AgentTool(Tool):
    """A tool whose calls are runs of `agent`. Its function turns the arguments into the user message."""

    def __init__(
        self,
        agent: "Agent",
        function: Callable[..., Any],
        name: str,
        description: str,
        parameters: Parameters,
        conduct: Conduct,
    ) -> None:
        super().__init__(function, name, description, parameters, conduct)
        self.agent = agent
        if conduct.retries:
            raise ToolDefinitionError(f"tool {name!r}: an agent is not retried as a whole; set retries=0")
        if self.is_async or self.asks_person:
            raise ToolDefinitionError(f"tool {name!r}: {function.__qualname__} must be a plain function")
        if not description:
            raise ToolDefinitionError(f"tool {name!r}: say in a description what the agent is good for")


def task_prompt(self: Any, task: str) -> Any:
    """The user message: text or content items.

    Args:
        task: What to do, with everything there is to know: the other agent sees nothing else.
    """
    return task


class BaseAgentTool(BaseLLMTool):
    """A class tool that runs another agent.

    Declare `AGENT` (a `BaseAgent` class), or override `make_agent`. `prompt(...)` turns the arguments into
    the inner agent's user message; without an `ARGS_SCHEMA` its signature is the schema. What the inner
    run costs counts for the calling agent and its limits; its events are in the same record; where it
    needs a person, the calling run is interrupted. Both share the context's `state`.

    The model: that of the `AgentToolConfig`, else the `AGENT`'s default, else the calling agent's.
    """

    AGENT: ClassVar["type[BaseAgent] | None"] = None
    EFFECT = Effect.IDEMPOTENT

    prompt: Any = task_prompt

    def __init__(
        self,
        configuration: BaseModel | dict[str, Any] | None = None,
        llm: LlmClient | None = None,
        data_set: Any = None,
        caller_llm: LlmClient | None = None,
    ) -> None:
        super().__init__(configuration, llm, data_set)
        self.caller_llm = caller_llm

    def make_agent(self) -> "Agent":
        """The agent that the tool runs; one serves all calls."""
        cls = type(self)
        if cls.AGENT is None:
            raise ToolDefinitionError(f"tool {cls.NAME!r}: {cls.__qualname__} has no AGENT")
        fallback = None if cls.AGENT.DEFAULT_MODEL else self.caller_llm
        return cls.AGENT.build(self._llm or fallback, data_set=self.data_set)

    def as_tool(self) -> Tool:
        cls = type(self)
        outer = _building.get()
        if cls in outer:
            path = " → ".join(one.__name__ for one in (*outer, cls))
            raise ToolDefinitionError(f"tool {cls.NAME!r}: an agent cannot be a tool of itself: {path}")
        token = _building.set((*outer, cls))
        try:
            agent = self.make_agent()
        finally:
            _building.reset(token)
        return AgentTool(
            agent, self.prompt, self.checked_name(), self._description(), self._parameters(), self.conduct()
        )

    def _description(self) -> str:
        cls = type(self)
        return cls.DESCRIPTION or (cls.AGENT and cls.AGENT.DESCRIPTION) or super()._description()

    def _parameters(self) -> Parameters:
        return self.parameters_for(self.prompt)


def agent_tool(
    agent: "Agent", description: str, name: str | None = None, conduct: Conduct | None = None
) -> Tool:
    """A tool that gives `agent` a task in words."""
    chosen = name or _FOREIGN.sub("_", agent.name)

    def prompt(task: str) -> str:
        return task

    docs = read_docs(task_prompt.__doc__)
    parameters = parameters_of(prompt, chosen, Docs(description, docs.parameters))
    conduct = conduct or Conduct(effect=Effect.IDEMPOTENT)
    return AgentTool(agent, prompt, chosen, description, parameters, conduct)

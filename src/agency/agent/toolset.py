"""Which tools an agent has: from every kind of declaration to the one `Tool` object."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agency.agent.llm import LlmClient
from agency.agent.named import as_client
from agency.agent.tool_classes import BaseTool
from agency.agent.tool_schema import ToolDefinitionError
from agency.agent.tools import Tool, function_tool

ClientFor = Callable[[LlmClient | str], LlmClient]


class Lent:
    """What an agent lends its tools; `settings` are what is stored for them, by tool `NAME`."""

    def __init__(
        self,
        llm: LlmClient | None,
        data_set: Any,
        settings: Mapping[str, dict[str, Any]],
        client_for: ClientFor,
    ) -> None:
        self.llm = llm
        self.data_set = data_set
        self.settings = settings
        self.client_for = client_for


def resolve_tools(
    tools: Iterable[Any],
    llm: LlmClient | None = None,
    data_set: Any = None,
    settings: Mapping[str, dict[str, Any]] | None = None,
    client_for: ClientFor = as_client,
) -> list[Tool]:
    """Turn every kind of declaration into `Tool`s, in order.

    `settings` holds per tool `NAME` what overrides its declared configuration; `client_for` makes a client
    of a config's `llm`. Two tools of one name are an error, since a model could not tell them apart.
    """
    lent = Lent(llm, data_set, settings or {}, client_for)
    resolved = [_resolve(item, lent) for item in tools]
    seen: set[str] = set()
    for made in resolved:
        if made.name in seen:
            raise ToolDefinitionError(f"two tools are called {made.name!r}; rename one of them")
        seen.add(made.name)
    return resolved


def _resolve(item: Any, lent: Lent) -> Tool:
    if isinstance(item, Tool):
        return item
    if isinstance(item, BaseTool):
        return item.as_tool()
    if inspect.isroutine(item):
        return function_tool(item)
    return _configured(item, lent)


def _configured(item: Any, lent: Lent) -> Tool:
    from agency.agent import configs  # which agents with plain functions have no use for

    if inspect.isclass(item) and issubclass(item, BaseTool):
        item = configs.ToolConfig(item)
    if isinstance(item, configs.ToolConfig | configs.LLMToolConfig | configs.AgentToolConfig):
        return configs.tool_of(item, lent)
    if isinstance(item, configs.FunctionToolConfig):
        item = item.function
    if isinstance(item, Tool):
        return item
    if callable(item) and not inspect.isclass(item):
        return function_tool(item)
    raise ToolDefinitionError(
        f"{item!r} is no tool; give a function, a BaseTool class or instance, or a ToolConfig"
    )

"""Which tools an agent has: the declarations, and how each becomes the one `Tool` object."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from agency.agent.agent_tool import BaseAgentTool
from agency.agent.llm import LlmClient
from agency.agent.named import as_client
from agency.agent.tool_classes import BaseLLMTool, BaseTool
from agency.agent.tool_schema import ToolDefinitionError
from agency.agent.tools import Tool, function_tool

Settings = dict[str, Any] | BaseModel
ClientFor = Callable[[LlmClient | str], LlmClient]


@dataclass(frozen=True, slots=True)
class ToolConfig:
    """A class tool and its settings (an instance of its `CONFIGURATION_ARGS` or a dict of them)."""

    tool_class: type[BaseTool]
    configuration: Settings | None = None


@dataclass(frozen=True, slots=True)
class LLMToolConfig:
    """A class tool that asks a model: `llm` is a client or a `"provider:model"`; the agent's if `None`."""

    tool_class: type[BaseTool]
    llm: LlmClient | str | None = None
    configuration: Settings | None = None


@dataclass(frozen=True, slots=True)
class AgentToolConfig:
    """A class tool that runs another agent, on `llm` if that is given: a client or a `"provider:model"`."""

    tool_class: type[BaseAgentTool]
    llm: LlmClient | str | None = None
    configuration: Settings | None = None


@dataclass(frozen=True, slots=True)
class FunctionToolConfig:
    """A plain function, or one decorated with `@tool`."""

    function: Callable[..., Any]


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
    around = _Around(llm, data_set, settings or {}, client_for)
    resolved = [_resolve(item, around) for item in tools]
    seen: set[str] = set()
    for made in resolved:
        if made.name in seen:
            raise ToolDefinitionError(f"two tools are called {made.name!r}; rename one of them")
        seen.add(made.name)
    return resolved


@dataclass(frozen=True, slots=True)
class _Around:
    """What an agent lends its tools."""

    llm: LlmClient | None
    data_set: Any
    settings: Mapping[str, dict[str, Any]]
    client_for: ClientFor


def _resolve(item: Any, around: _Around) -> Tool:
    if isinstance(item, Tool):
        return item
    if isinstance(item, BaseTool):
        return item.as_tool()
    if inspect.isclass(item) and issubclass(item, BaseTool):
        item = ToolConfig(item)
    if isinstance(item, ToolConfig | LLMToolConfig | AgentToolConfig):
        return _from_class(item, around)
    if isinstance(item, FunctionToolConfig):
        item = item.function
    if isinstance(item, Tool):
        return item
    if callable(item) and not inspect.isclass(item):
        return function_tool(item)
    raise ToolDefinitionError(
        f"{item!r} is no tool; give a function, a BaseTool class or instance, or a ToolConfig"
    )


def _from_class(config: ToolConfig | LLMToolConfig | AgentToolConfig, around: _Around) -> Tool:
    cls = config.tool_class
    configuration = merged(cls, config.configuration, around.settings.get(cls.NAME))
    if not issubclass(cls, BaseLLMTool):
        return cls(configuration).as_tool()
    named = None if isinstance(config, ToolConfig) else config.llm
    own = None if named is None else around.client_for(named)
    if issubclass(cls, BaseAgentTool):
        return cls(configuration, own, around.data_set, around.llm).as_tool()
    return cls(configuration, around.llm if own is None else own, around.data_set).as_tool()


def merged(cls: type[BaseTool], declared: Settings | None, stored: dict[str, Any] | None) -> Settings | None:
    """A tool's declared settings with those that are stored for an agent."""
    if not stored:
        return declared
    # Only what was said: defaults that nobody chose guard nothing.
    base = (
        declared.model_dump(exclude_unset=True) if isinstance(declared, BaseModel) else dict(declared or {})
    )
    return cls.overridden(base, stored)

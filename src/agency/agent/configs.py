"""Declarations of tools that are more than a function, and how a class tool is made of one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from agency.agent.agent_tool import BaseAgentTool
from agency.agent.llm import LlmClient
from agency.agent.tool_classes import BaseLLMTool, BaseTool
from agency.agent.tools import Tool
from agency.agent.toolset import Lent

Settings = dict[str, Any] | BaseModel


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


def tool_of(config: ToolConfig | LLMToolConfig | AgentToolConfig, lent: Lent) -> Tool:
    """The tool that is declared so, with what is stored for it and what the agent lends it."""
    cls = config.tool_class
    configuration = merged(cls, config.configuration, lent.settings.get(cls.NAME))
    if not issubclass(cls, BaseLLMTool):
        return cls(configuration).as_tool()
    named = None if isinstance(config, ToolConfig) else config.llm
    own = None if named is None else lent.client_for(named)
    if issubclass(cls, BaseAgentTool):
        return cls(configuration, own, lent.data_set, lent.llm).as_tool()
    return cls(configuration, lent.llm if own is None else own, lent.data_set).as_tool()


def merged(cls: type[BaseTool], declared: Settings | None, stored: dict[str, Any] | None) -> Settings | None:
    """A tool's declared settings with those that are stored for an agent."""
    if not stored:
        return declared
    # Only what was said: defaults that nobody chose guard nothing.
    base = (
        declared.model_dump(exclude_unset=True) if isinstance(declared, BaseModel) else dict(declared or {})
    )
    return cls.overridden(base, stored)

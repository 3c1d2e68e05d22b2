"""The agent core: think with a model, act with tools, keep every fact. Works without Django or a database."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agency.agent.agent import Agent
from agency.agent.agent_tool import AgentTool, BaseAgentTool
from agency.agent.context import ExecutionContext
from agency.agent.events import (
    ContentItem,
    Event,
    EventError,
    FilePart,
    Message,
    ProviderPart,
    ToolCall,
    ToolResult,
    Usage,
)
from agency.agent.hooks import Hooks
from agency.agent.injection import HumanAnswer, Injected, ToolCallInfo
from agency.agent.journal import Journal, NullJournal, Recorded, RunScope
from agency.agent.limits import Limits
from agency.agent.llm import (
    Delta,
    LlmClient,
    LlmRequest,
    LlmResponse,
    OutputSchema,
    ToolSpec,
    with_structured_output,
)
from agency.agent.prompt import (
    EverythingBuilder,
    RequestBuilder,
    SelectingBuilder,
    TrimmingBuilder,
    WindowBuilder,
)
from agency.agent.result import AgentResult, RunStatus
from agency.agent.sources import ToolSource
from agency.agent.tool_classes import BaseFunctionTool, BaseLLMTool, BaseTool
from agency.agent.tool_schema import ToolDefinitionError
from agency.agent.tools import Tool, tool
from agency.agent.toolset import resolve_tools
from agency.enums import Effect
from agency.errors import (
    ContextOverflow,
    ModelError,
    ModelOutputInvalid,
    ModelRefused,
    ModelUnavailable,
    RunCancelled,
    RunParked,
    RunReleased,
    RunSignal,
    ToolsUnavailable,
)

if TYPE_CHECKING:
    from agency.agent.configs import AgentToolConfig, FunctionToolConfig, LLMToolConfig, ToolConfig
    from agency.agent.confirmation import Confirmation
    from agency.agent.declared import BaseAgent
    from agency.agent.mcp import McpServer, McpToolError
    from agency.agent.processes import ProcessResult, run_process
    from agency.agent.summary import SummaryBuilder
    from agency.agent.trace import display_trace

_LATER = {
    "AgentToolConfig": "agency.agent.configs",
    "BaseAgent": "agency.agent.declared",
    "Confirmation": "agency.agent.confirmation",
    "FunctionToolConfig": "agency.agent.configs",
    "LLMToolConfig": "agency.agent.configs",
    "McpServer": "agency.agent.mcp",
    "McpToolError": "agency.agent.mcp",
    "ProcessResult": "agency.agent.processes",
    "SummaryBuilder": "agency.agent.summary",
    "ToolConfig": "agency.agent.configs",
    "run_process": "agency.agent.processes",
    "display_trace": "agency.agent.trace",
}
"""Names that few runs need: their modules are loaded when they are first asked for."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_LATER[name]), name)
    return found


__all__ = [
    "Agent",
    "AgentResult",
    "AgentTool",
    "AgentToolConfig",
    "BaseAgent",
    "BaseAgentTool",
    "BaseFunctionTool",
    "BaseLLMTool",
    "BaseTool",
    "Confirmation",
    "ContentItem",
    "ContextOverflow",
    "Delta",
    "Effect",
    "Event",
    "EventError",
    "EverythingBuilder",
    "ExecutionContext",
    "FilePart",
    "FunctionToolConfig",
    "Hooks",
    "HumanAnswer",
    "Injected",
    "Journal",
    "LLMToolConfig",
    "Limits",
    "LlmClient",
    "LlmRequest",
    "LlmResponse",
    "McpServer",
    "McpToolError",
    "Message",
    "ModelError",
    "ModelOutputInvalid",
    "ModelRefused",
    "ModelUnavailable",
    "NullJournal",
    "OutputSchema",
    "ProcessResult",
    "ProviderPart",
    "Recorded",
    "RequestBuilder",
    "RunCancelled",
    "RunParked",
    "RunReleased",
    "RunScope",
    "RunSignal",
    "RunStatus",
    "SelectingBuilder",
    "SummaryBuilder",
    "Tool",
    "ToolCall",
    "ToolCallInfo",
    "ToolConfig",
    "ToolDefinitionError",
    "ToolResult",
    "ToolSource",
    "ToolSpec",
    "ToolsUnavailable",
    "TrimmingBuilder",
    "Usage",
    "WindowBuilder",
    "display_trace",
    "resolve_tools",
    "run_process",
    "tool",
    "with_structured_output",
]

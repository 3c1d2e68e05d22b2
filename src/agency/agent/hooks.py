"""Places where a caller may look into a run or answer in its stead."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agency.agent.context import ExecutionContext
from agency.agent.events import Event, ToolCall, ToolResult
from agency.agent.llm import Delta, LlmRequest, LlmResponse


@dataclass(frozen=True, slots=True)
class Hooks:
    """Functions that a run calls on its own thread; what is `None` or returns `None` changes nothing.

    `before_llm` may answer instead of the model, `before_tool` instead of the tool (with a `ToolResult`
    or any value), `after_tool` may replace the result. `on_event` sees each newly recorded event, `on_delta`
    the pieces of an answer as they come, where the model can stream.
    """

    before_llm: Callable[[ExecutionContext, LlmRequest], LlmResponse | None] | None = None
    before_tool: Callable[[ExecutionContext, ToolCall], Any] | None = None
    after_tool: Callable[[ExecutionContext, ToolCall, ToolResult], ToolResult | None] | None = None
    on_event: Callable[[Event], None] | None = None
    on_delta: Callable[[Delta], None] | None = None

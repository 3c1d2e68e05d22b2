"""Request builders: which part of a context the model sees. They select; they never change the record."""

from typing import Protocol

from agency.agent.context import ExecutionContext
from agency.agent.events import ToolResult
from agency.agent.history import History, history_of
from agency.agent.llm import LlmRequest

INTERRUPTED = "This call was interrupted and has no result. It may or may not have taken effect."


class RequestBuilder(Protocol):
    """Fills `request.contents` from the context; instructions, tools and output shape are already set."""

    def build(self, context: ExecutionContext, request: LlmRequest) -> LlmRequest: ...


class EverythingBuilder:
    """The whole history, in order. The prefix is stable, so a provider's cache stays warm."""

    def build(self, context: ExecutionContext, request: LlmRequest) -> LlmRequest:
        request.contents = list(history_of(context).contents)
        return request


def repairs(history: History, why: str = INTERRUPTED) -> list[ToolResult]:
    """A synthetic result for each call that has none, since no provider accepts a dangling call."""
    return [
        ToolResult(tool_call_id=call.tool_call_id, name=call.name, status="error", content=why)
        for call in history.open_calls.values()
    ]

"""Stand-ins for what surrounds a run: a journal in memory, and a model as particular as a provider."""

from collections.abc import Sequence
from typing import Any

from agency.agent import (
    ContentItem,
    Event,
    LlmRequest,
    LlmResponse,
    Message,
    Recorded,
    ToolCall,
    ToolResult,
)
from agency.agent.testing import ScriptedLlm
from agency.enums import Effect


class MemoryJournal:
    """Keeps everything in order, as a runtime's journal would in rows."""

    def __init__(self, scope: str = "exec:1") -> None:
        self.scope = scope
        self.entries: dict[str, Recorded] = {}
        self.log: list[tuple[str, str]] = []
        self.intents: dict[str, tuple[Effect, str]] = {}

    def recall(self, key: str) -> Recorded | None:
        return self.entries.get(key)

    def intend(self, key: str, effect: Effect, idempotency_key: str) -> None:
        self.log.append(("intend", key))
        self.intents[key] = (effect, idempotency_key)

    def record(self, key: str, result: Any, events: Sequence[Event], settles: Sequence[str] = ()) -> None:
        assert key not in self.entries, f"{key} was recorded twice"
        self.log.append(("record", key))
        self.entries[key] = Recorded(result, list(events))

    def forget_after(self, count: int) -> None:
        """Keep the first `count` records only, as if the process had died there."""
        for key in list(self.entries)[count:]:
            del self.entries[key]


class Strict(ScriptedLlm):
    """Refuses, as providers do, a history in which a call has not exactly one result right after it."""

    def generate(self, request: LlmRequest) -> LlmResponse:
        check(request.contents)
        return super().generate(request)


def check(history: Sequence[ContentItem]) -> None:
    open_: list[str] = []
    seen: set[str] = set()
    for item in history:
        if isinstance(item, ToolCall):
            assert item.tool_call_id not in seen
            seen.add(item.tool_call_id)
            open_.append(item.tool_call_id)
        elif isinstance(item, ToolResult):
            open_.remove(item.tool_call_id)
        elif isinstance(item, Message) and item.role == "user":
            assert not open_, "a user message before the results"
    assert not open_, "a call without a result"


def greeter() -> ScriptedLlm:
    """A model to be found by name."""
    return ScriptedLlm("hello", loop=True)

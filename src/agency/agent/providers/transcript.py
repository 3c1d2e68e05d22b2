"""A history in pydantic-ai's words: requests and responses in turn. Does no I/O.

It is kept from one request to the next and grows with the history, so that each item is translated once.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from agency.agent.events import ContentItem
from agency.agent.llm import LlmRequest

response_parts: TypeAdapter[ModelResponsePart] = TypeAdapter(ModelResponsePart)


def to_messages(request: LlmRequest, system: str) -> list[ModelMessage]:
    """The request's history as alternating requests and responses; `system` is the vendor it goes to."""
    transcript: Transcript = request.kept.setdefault((Transcript, system), Transcript(system))
    return transcript.of(request.contents) or [ModelRequest(parts=[])]


@dataclass(slots=True)
class Side:
    """What one side says before the other does: parts of one message, from the item at `start` on."""

    start: int
    message: type[ModelRequest] | type[ModelResponse]
    parts: list[Any]


class Transcript:
    """The messages of one history for one vendor."""

    def __init__(self, system: str) -> None:
        self._system = system
        self._items: list[ContentItem] = []
        self._sides: list[Side] = []
        self._messages: list[ModelMessage] = []
        self._extra: dict[str, Any] = {}
        """What the vendor attached to the item that comes next, and where that was said."""
        self._extra_at = 0

    def of(self, contents: Sequence[ContentItem]) -> list[ModelMessage]:
        """The messages for `contents`; what is as it was the last time is not read again."""
        self._go_back(contents)
        for item in contents[len(self._items) :]:
            self._read(item)
            self._items.append(item)
        if self._messages and len(self._messages[-1].parts) < len(self._sides[len(self._messages) - 1].parts):
            del self._messages[-1]
        # A copy of the parts, since the message that is sent must not grow with the side.
        self._messages += [side.message(parts=[*side.parts]) for side in self._sides[len(self._messages) :]]
        return [*self._messages]

    def _go_back(self, contents: Sequence[ContentItem]) -> None:
        """Forget the messages from the first item on that is another one now."""
        known = len(self._items)
        if contents[:known] == self._items:
            return
        pairs = enumerate(zip(self._items, contents, strict=False))
        changed = next((place for place, (old, new) in pairs if old != new), len(contents))
        kept = max(0, bisect_right(self._sides, changed, key=lambda side: side.start) - 1)
        del self._items[self._sides[kept].start if self._sides else 0 :]
        del self._sides[kept:], self._messages[kept:]
        self._extra = {}

    def _read(self, item: ContentItem) -> None:
        if item.type == "provider":
            if item.provider == self._system and "part" not in item.data:
                self._extra, self._extra_at = item.data, len(self._items)
            elif item.provider == self._system:
                self._say(ModelResponse, response_parts.validate_python(item.data["part"]))
            return
        if (told := _request_part(item)) is not None:
            self._say(ModelRequest, told)
        elif (said := _response_part(item, self._extra)) is not None:
            self._say(ModelResponse, said)
        self._extra = {}

    def _say(self, message: type[ModelRequest] | type[ModelResponse], part: Any) -> None:
        if self._sides and self._sides[-1].message is message:
            self._sides[-1].parts.append(part)
            return
        attached = self._extra and message is ModelResponse
        start = self._extra_at if attached else len(self._items)
        self._sides.append(Side(start if self._sides else 0, message, [part]))


def _request_part(item: ContentItem) -> ModelRequestPart | None:
    if item.type == "message" and item.role == "user":
        return UserPromptPart(content=item.content)
    if item.type == "message" and item.role == "system":
        return SystemPromptPart(content=item.content)
    if item.type == "tool_result":
        return ToolReturnPart(
            tool_name=item.name,
            content=item.content,
            tool_call_id=item.tool_call_id,
            outcome="success" if item.status == "success" else "failed",
        )
    return None


def _response_part(item: ContentItem, extra: dict[str, Any]) -> ModelResponsePart | None:
    if item.type == "message":
        return _reattach(TextPart(content=item.content), extra if "text" in extra else {})
    if item.type == "tool_call":
        arguments = item.arguments if item.invalid is None else item.invalid
        part = ToolCallPart(tool_name=item.name, args=arguments, tool_call_id=item.tool_call_id)
        return _reattach(part, extra if extra.get("tool_call_id") == item.tool_call_id else {})
    return None


def _reattach(part: TextPart | ToolCallPart, extra: dict[str, Any]) -> TextPart | ToolCallPart:
    part.id = extra.get("id")
    part.provider_name = extra.get("provider_name")
    part.provider_details = extra.get("provider_details")
    return part

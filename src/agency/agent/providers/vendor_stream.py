"""A vendor's stream in our words: deltas as they come, then the whole response as pydantic-ai built it.

The deltas are for who watches; what is kept and sent back (signatures, item ids) is in the response.
"""

import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import (
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)

from agency.agent.llm import Delta
from agency.agent.providers.translate import FINAL

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from pydantic_ai.models import StreamedResponse


async def pieces(
    opening: "AbstractAsyncContextManager[StreamedResponse]", final_is_text: bool
) -> AsyncIterator[Delta | ModelResponse]:
    """The deltas of the stream that `opening` opens, and the response at its end.

    `final_is_text` says that the arguments of the forced tool are the answer itself.
    """
    async with opening as stream:
        reader = _Reader(final_is_text)
        async for event in stream:
            for delta in reader.read(event):
                yield delta
        yield stream.get()


class _Reader:
    """Knows which call a piece of arguments belongs to."""

    def __init__(self, final_is_text: bool) -> None:
        self._final_is_text = final_is_text
        self._calls: dict[int, ToolCallPart] = {}

    def read(self, event: Any) -> list[Delta]:
        if isinstance(event, PartStartEvent):
            return self._start(event.index, event.part)
        if not isinstance(event, PartDeltaEvent):
            return []
        piece = event.delta
        if isinstance(piece, TextPartDelta):
            return _said("text", piece.content_delta)
        if isinstance(piece, ThinkingPartDelta):
            return _said("thinking", piece.content_delta)
        if isinstance(piece, ToolCallPartDelta) and event.index in self._calls:
            return self._arguments(self._calls[event.index], piece.args_delta)
        return []

    def _start(self, index: int, part: Any) -> list[Delta]:
        if isinstance(part, TextPart):
            return _said("text", part.content)
        if isinstance(part, ThinkingPart):
            return _said("thinking", part.content)
        if not isinstance(part, ToolCallPart):
            return []
        self._calls[index] = part
        arguments = self._arguments(part, part.args)
        return arguments if self._is_answer(part) else [_of_call(part, ""), *arguments]

    def _arguments(self, part: ToolCallPart, piece: str | dict[str, Any] | None) -> list[Delta]:
        if not piece:
            return []
        text = piece if isinstance(piece, str) else json.dumps(piece, ensure_ascii=False)
        return _said("text", text) if self._is_answer(part) else [_of_call(part, text)]

    def _is_answer(self, part: ToolCallPart) -> bool:
        return self._final_is_text and part.tool_name == FINAL


def _of_call(part: ToolCallPart, text: str) -> Delta:
    return Delta("tool_call", text, part.tool_call_id, part.tool_name)


def _said(kind: Any, text: str | None) -> list[Delta]:
    return [Delta(kind, text)] if text else []

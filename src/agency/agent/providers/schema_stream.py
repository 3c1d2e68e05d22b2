"""What of an answer in schema mode can be shown while it is still coming: the text of a final answer.

A call is shown when it is whole, since until then nobody can say whether it will be asked for again. Pure.
"""

import json
import re
from collections.abc import Iterator

from agency.agent.events import ToolCall
from agency.agent.llm import Delta, LlmRequest, LlmResponse
from agency.agent.providers.schema_mode import FINAL
from agency.agent.text import clean

_OPENING = re.compile(rf'\s*\{{\s*"{FINAL}"\s*:\s*"')
_WHOLE = re.compile(
    r'(?:[^"\\\x00-\x1f]'
    r'|\\["\\/bfnrt]'
    r"|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*"
)
_MAY_BE_A_CALL = ("{", "`")


class Reader:
    """Reads one answer piece by piece; `rest` gives what could not be shown before it was whole."""

    def __init__(self, request: LlmRequest) -> None:
        self._plain = not request.tools
        self._open = False
        self._raw = ""
        self._held = ""
        self._told = ""

    def feed(self, piece: str) -> str:
        """The text that this piece adds for who reads along; empty while that is not known yet."""
        if self._plain:
            return self._tell(piece)
        self._raw += piece
        if not self._open:
            opening = _OPENING.match(self._raw)
            if opening is None:
                return ""
            self._open, self._raw = True, self._raw[opening.end() :]
        # What stops the text (its end, or half an escape) stays, so that nothing behind it counts.
        whole = _WHOLE.match(self._raw)
        if whole is not None and whole.end():
            self._held += json.loads(f'"{whole[0]}"')
            self._raw = self._raw[whole.end() :]
        if not self._told and self._held.lstrip()[:1] in ("", *_MAY_BE_A_CALL):
            return ""
        text, self._held = self._held, ""
        return self._tell(text)

    def rest(self, response: LlmResponse) -> Iterator[Delta]:
        """What is left to be shown of the whole answer."""
        text = response.text
        if not text.startswith(self._told):
            yield Delta("restart")
            self._told = ""
        if left := text[len(self._told) :]:
            yield Delta("text", clean(left))
        for item in response.content:
            if isinstance(item, ToolCall):
                arguments = json.dumps(item.arguments, ensure_ascii=False)
                yield Delta("tool_call", "", item.tool_call_id, item.name)
                yield Delta("tool_call", item.invalid or arguments, item.tool_call_id, item.name)

    def _tell(self, text: str) -> str:
        self._told += text
        return clean(text)

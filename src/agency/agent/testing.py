"""A language model that says what a test tells it to: answers, tool calls, faults and delays, in order."""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from agency.agent.events import ContentItem, FilePart, Message, ProviderPart, ToolCall, ToolResult, Usage
from agency.agent.llm import Delta, LlmRequest, LlmResponse

_ITEMS = (Message, ToolCall, ToolResult, ProviderPart, FilePart)


@dataclass(frozen=True, slots=True)
class Delay:
    """An answer that takes `seconds` to come."""

    seconds: float
    item: Any


@dataclass(frozen=True, slots=True)
class Stall:
    """An answer whose stream gives `after` pieces and then nothing for `seconds`, or until `over` is set."""

    item: Any
    after: int = 1
    seconds: float = 3600.0
    over: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, slots=True)
class Break:
    """An answer whose stream gives `after` pieces and then raises `error`."""

    item: Any
    error: Exception
    after: int = 1


class ScriptExhausted(AssertionError):
    """The model was asked more often than the script has answers."""


class ScriptedLlm:
    """Plays `answers` one per request, from any thread, and keeps the `requests`.

    An answer is a text, a content item or a list of them, an `LlmResponse`, an exception (raised), a
    `Delay`, `Stall` or `Break` of any of these, or a function of the request that returns one. `delay`
    (seconds) is added to each; `loop=True` repeats the last answer for ever. Streams word by word.
    """

    def __init__(
        self,
        *answers: Any,
        delay: float = 0.0,
        loop: bool = False,
        output_mode: str = "tool",
        model_name: str = "scripted:test",
    ) -> None:
        self.answers = list(answers)
        self.requests: list[LlmRequest] = []
        self.delay = delay
        self.loop = loop
        self.output_mode = output_mode
        self.model_name = model_name
        self._lock = threading.Lock()

    def generate(self, request: LlmRequest) -> LlmResponse:
        number, answer = self._take(request)
        if isinstance(answer, Break):
            raise answer.error
        if isinstance(answer, Stall):
            answer.over.wait(answer.seconds)
            answer = answer.item
        return self._respond(answer, request, number)

    def stream(self, request: LlmRequest) -> Iterator[Delta | LlmResponse]:
        number, answer = self._take(request)
        held = answer if isinstance(answer, Stall | Break) else None
        response = self._respond(answer if held is None else held.item, request, number)
        for place, piece in enumerate([*_pieces(response), response]):
            if held is not None and place == held.after:
                if isinstance(held, Break):
                    raise held.error
                held.over.wait(held.seconds)
            yield piece

    @property
    def remaining(self) -> int:
        """How many answers were not asked for."""
        return max(0, len(self.answers) - len(self.requests))

    def _take(self, request: LlmRequest) -> tuple[int, Any]:
        with self._lock:
            number = len(self.requests)
            answer = self._answer(number)
            self.requests.append(request)
        if self.delay:
            time.sleep(self.delay)
        return number, answer

    def _answer(self, number: int) -> Any:
        if number < len(self.answers):
            return self.answers[number]
        if self.loop and self.answers:
            return self.answers[-1]
        raise ScriptExhausted(
            f"the script has {len(self.answers)} answers, but the model was asked {number + 1} times; "
            "add an answer or pass loop=True"
        )

    def _respond(self, answer: Any, request: LlmRequest, number: int) -> LlmResponse:
        if isinstance(answer, Delay):
            time.sleep(answer.seconds)
            return self._respond(answer.item, request, number)
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, LlmResponse):
            return answer
        if callable(answer):
            function = cast("Callable[[LlmRequest], Any]", answer)
            return self._respond(function(request), request, number)
        content = _content(answer)
        called = any(isinstance(item, ToolCall) for item in content)
        usage = Usage(
            model_calls=1, input_tokens=10 + 2 * len(request.contents), output_tokens=5 * len(content)
        )
        return LlmResponse(content, usage, "tool_calls" if called else "stop", self.model_name)


def call(name: str, /, tool_call_id: str | None = None, **arguments: Any) -> ToolCall:
    """A tool call for a script: `call("add", a=1, b=2)`."""
    return ToolCall(tool_call_id=tool_call_id or f"call_{name}", name=name, arguments=arguments)


def _pieces(response: LlmResponse) -> Iterator[Delta]:
    for item in response.content:
        if isinstance(item, Message):
            yield from (Delta("text", word) for word in re.findall(r"\S+\s*|\s+", item.content))
        elif isinstance(item, ToolCall):
            arguments = item.invalid if item.invalid is not None else json.dumps(item.arguments)
            yield Delta("tool_call", "", item.tool_call_id, item.name)
            yield Delta("tool_call", arguments, item.tool_call_id, item.name)


def _content(answer: Any) -> list[ContentItem]:
    if isinstance(answer, str):
        return [Message(role="assistant", content=answer)]
    if isinstance(answer, _ITEMS):
        return [answer]
    if isinstance(answer, list | tuple):
        return [item for part in cast("Sequence[Any]", answer) for item in _content(part)]
    raise TypeError(f"{answer!r} cannot be an answer of a script")

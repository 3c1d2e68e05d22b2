"""Asks a local model: an `LlmClient` over the server's chat endpoint, with tools in schema mode.

Speaks plain HTTP instead of going through a vendor's SDK: the schema mode needs the raw request anyway,
and a base install then runs a local model without any SDK.
"""

from collections.abc import Callable, Generator, Iterator
from typing import Any

from agency.agent import background
from agency.agent.events import ToolCall, Usage
from agency.agent.llm import Delta, FinishReason, LlmRequest, LlmResponse
from agency.agent.providers import local_probe, local_wire, schema_mode
from agency.agent.providers.local import Endpoint, endpoint_for
from agency.agent.providers.schema_stream import Reader
from agency.agent.streaming import FIRST_PIECE, NEXT_PIECE, WAITING
from agency.errors import ModelOutputInvalid, ModelUnavailable

_TIMEOUT = 600.0
_MARGIN = 10.0
_PASSED = ("temperature", "top_p", "top_k", "seed", "stop", "presence_penalty", "frequency_penalty")


class LocalClient:
    """A client for `local:<name>`; the server is found or started at the first request.

    Settings: `max_tokens` (512), `temperature` (0), `seed` (1), `calls_per_tool` in a turn (1), and in
    seconds once the model's slot is had: `timeout`, for the whole answer (600) or the first piece of a stream
    (300), and `chunk_timeout`, for each other piece (120). `probe` asks for no answer but for a reading of
    the model's state: see `local_probe`.
    """

    output_mode = "native"
    takes_probes = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.model_name = f"local:{name}"

    def generate(self, request: LlmRequest) -> LlmResponse:
        """Ask once; a tool call that only repeats an answered one is asked again without that tool."""
        if local_probe.SETTING in request.settings:
            timeout = _seconds(request, "timeout", _TIMEOUT)
            return local_probe.answer(endpoint_for(self.name), request, self.model_name, timeout)
        for piece in self._asked(request, self._whole):
            if isinstance(piece, LlmResponse):
                return piece
        raise AssertionError("unreachable: the last piece is the answer")

    def stream(self, request: LlmRequest) -> Iterator[Delta | LlmResponse]:
        """As `generate`, in pieces; of a tool call nothing is shown before it is whole, and never as text."""
        return self._asked(request, self._pieces)

    def _asked(
        self,
        request: LlmRequest,
        way: "Callable[[Endpoint, dict[str, Any], LlmRequest, Reader], _Answer]",
    ) -> Iterator[Delta | LlmResponse]:
        endpoint = endpoint_for(self.name)
        banned: frozenset[str] = frozenset()
        spent = Usage()
        while True:
            reader = Reader(request)
            body = _body(request, schema_mode.choices(request, banned))
            response = self._read((yield from way(endpoint, body, request, reader)), request)
            spent = spent + (response.usage or Usage())
            call = response.content[0]
            if not isinstance(call, ToolCall) or not schema_mode.repeats(call, request.contents):
                response.usage = spent
                yield from reader.rest(response)
                yield response
                return
            banned = banned | {call.name}

    def _whole(
        self, endpoint: Endpoint, body: dict[str, Any], request: LlmRequest, reader: Reader
    ) -> "_Answer":
        yield from ()
        return background.run(local_wire.ask(endpoint, body, _seconds(request, "timeout", _TIMEOUT)))

    def _pieces(
        self, endpoint: Endpoint, body: dict[str, Any], request: LlmRequest, reader: Reader
    ) -> "_Answer":
        first = _seconds(request, "timeout", FIRST_PIECE)
        then = _seconds(request, "chunk_timeout", NEXT_PIECE)
        answer = _Collected()
        longest = max(first, then) + _MARGIN
        chunks = local_wire.chunks(endpoint, body, first, then)
        for chunk in background.iterate(chunks, first=longest, then=longest):
            yield WAITING if chunk is None else Delta("text", reader.feed(answer.add(chunk)))
        return answer.as_json()

    def _read(self, answer: dict[str, Any], request: LlmRequest) -> LlmResponse:
        try:
            choice = answer["choices"][0]
            text: str = choice["message"].get("content") or ""
            cut = choice.get("finish_reason") == "length"
            usage = _usage(answer.get("usage") or {})
        except (KeyError, IndexError, TypeError, AttributeError) as exc:
            raise ModelOutputInvalid(
                "the local server's answer has no choices", raw=str(answer)[:2000]
            ) from exc
        content = schema_mode.parse_cut(text, request) if cut else schema_mode.parse(text, request)
        reason: FinishReason = "tool_calls" if isinstance(content[0], ToolCall) else "stop"
        return LlmResponse(list(content), usage, "length" if cut else reason, self.model_name)


def _body(request: LlmRequest, open_: schema_mode.Choices) -> dict[str, Any]:
    settings = request.settings
    body: dict[str, Any] = {
        "messages": schema_mode.messages(request, open_),
        "max_tokens": int(settings.get("max_tokens") or 512),
        "temperature": 0,
        "seed": 1,
        "cache_prompt": True,
    }
    body.update({key: settings[key] for key in _PASSED if settings.get(key) is not None})
    if schema := schema_mode.response_schema(request, open_):
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    return body


def _seconds(request: LlmRequest, name: str, default: float) -> float:
    return float(request.settings.get(name) or default)


def _usage(told: dict[str, Any]) -> Usage:
    details = told.get("prompt_tokens_details") or {}
    return Usage(
        model_calls=1,
        input_tokens=int(told.get("prompt_tokens") or 0),
        output_tokens=int(told.get("completion_tokens") or 0),
        cached_tokens=int(details.get("cached_tokens") or 0),
        cost=0.0,
    )


_Answer = Generator[Delta, None, dict[str, Any]]
"""Gives the pieces that are to be shown, and at the end the server's answer as JSON."""


class _Collected:
    """The chunks of a streamed answer put together."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reason: str | None = None
        self._usage: dict[str, Any] = {}

    def add(self, chunk: dict[str, Any]) -> str:
        """Take a chunk in; returns its piece of the answer."""
        try:
            self._usage = chunk.get("usage") or self._usage
            choices = chunk.get("choices") or [{}]
            self._reason = choices[0].get("finish_reason") or self._reason
            text: str = (choices[0].get("delta") or {}).get("content") or ""
        except (IndexError, KeyError, TypeError, AttributeError) as exc:
            raise ModelOutputInvalid(
                "the local server's stream has no choices", raw=str(chunk)[:2000]
            ) from exc
        self._text.append(text)
        return text

    def as_json(self) -> dict[str, Any]:
        """The answer as the server gives one that is not streamed."""
        if self._reason is None:
            raise ModelUnavailable("the local model's stream ended before the answer did")
        choice = {"message": {"content": "".join(self._text)}, "finish_reason": self._reason}
        return {"choices": [choice], "usage": self._usage}

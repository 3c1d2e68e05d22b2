"""Hosted models through pydantic-ai's model layer: one adapter for every vendor.

Requests run on the background loop over one connection pool per process, once each: retries belong to
the caller. No other module knows a vendor's SDK.
"""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from agency.agent import background
from agency.agent.llm import Delta, LlmRequest, LlmResponse
from agency.agent.providers import transcript, translate, vendor_errors, vendor_models
from agency.errors import ModelUnavailable

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model

WHOLE, FIRST_PIECE, NEXT_PIECE = 300.0, 60.0, 90.0


class VendorClient:
    """A client for `provider:model`; SDK and connection are set up at the first request.

    Settings are pydantic-ai's (`max_tokens`, `temperature`, `seed`, `thinking`, ...), and in seconds
    `timeout`: for the whole request, or the first piece of a stream (300), and `chunk_timeout`: for each
    other piece (120).
    """

    def __init__(self, provider: str, model: str) -> None:
        self.provider = provider
        self.model_name = f"{provider}:{model}"
        self._name = model

    @property
    def model(self) -> "Model":
        """pydantic-ai's model, which every client of the same name shares."""
        return vendor_models.build(self.provider, self._name)

    @property
    def output_mode(self) -> str:
        """`native` where the vendor constrains answers to a schema itself, else `tool`."""
        return "native" if _is_native(self.model) else "tool"

    def generate(self, request: LlmRequest) -> LlmResponse:
        """Ask once. Raises the `ModelError` family, whose messages never hold a key."""
        timeout = float(request.settings.get("timeout") or WHOLE)
        model = self.model
        asked = _asked(model, request)
        try:
            response = background.run(_whole(asked), timeout=timeout)
        except TimeoutError:
            raise ModelUnavailable(f"{self.model_name}: no answer within {timeout:g} s") from None
        except vendor_errors.expected() as exc:
            raise vendor_errors.translate(exc, self.model_name) from None
        return translate.from_response(response, request, model.system, self.model_name)

    def stream(self, request: LlmRequest) -> Iterator[Delta | LlmResponse]:
        """Ask once, for an answer in pieces; behind them the whole answer, as `generate` gives it."""
        first = float(request.settings.get("timeout") or FIRST_PIECE)
        then = float(request.settings.get("chunk_timeout") or NEXT_PIECE)
        whole = float(request.settings.get("stream_timeout") or WHOLE)
        over = time.monotonic() + whole
        model = self.model
        asked = _asked(model, request)
        forced = request.output_schema is not None and not _is_native(model)
        try:
            for piece in background.iterate(_pieces(asked, forced), first=first, then=then):
                if isinstance(piece, Delta):
                    if time.monotonic() >= over:
                        raise ModelUnavailable(
                            f"{self.model_name}: the stream was not over within {whole:g} s"
                        )
                    yield piece
                elif piece.state != "complete" or piece.finish_reason is None:
                    raise ModelUnavailable(f"{self.model_name}: the stream ended before the answer did")
                else:
                    yield translate.from_response(piece, request, model.system, self.model_name)
        except TimeoutError as exc:
            raise ModelUnavailable(f"{self.model_name}: the stream stalled ({exc})") from None
        except vendor_errors.expected() as exc:
            raise vendor_errors.translate(exc, self.model_name) from None


def _is_native(model: "Model") -> bool:
    return bool(model.profile.get("supports_json_schema_output"))


def _asked(model: "Model", request: LlmRequest) -> dict[str, Any]:
    """The request as pydantic-ai's functions take it."""
    from pydantic_ai.settings import ModelSettings

    ours = {"timeout", "chunk_timeout", "stream_timeout"}
    settings = {name: value for name, value in request.settings.items() if name not in ours}
    settings["max_retries"] = 0
    if request.tools and request.tool_choice != "auto":
        settings["tool_choice"] = request.tool_choice
    return {
        "model": model,
        "messages": transcript.to_messages(request, model.system),
        "model_settings": ModelSettings(**settings),
        "model_request_parameters": translate.to_parameters(request, native=_is_native(model)),
    }


async def _whole(asked: dict[str, Any]) -> "ModelResponse":
    model, settings = asked["model"], asked["model_settings"]
    if not model.profile.get("may_tokenize_special_tokens_in_content") and "request_timeout" not in settings:
        # What `direct` would add reads the whole history each time, for parts that ours never has.
        return await model.request(asked["messages"], settings, asked["model_request_parameters"])
    from pydantic_ai import direct

    return await direct.model_request(**asked)


def _pieces(asked: dict[str, Any], forced: bool) -> Any:
    from pydantic_ai import direct

    from agency.agent.providers import vendor_stream

    return vendor_stream.pieces(direct.model_request_stream(**asked), forced)

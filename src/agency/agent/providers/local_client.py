"""Asks a local model: an `LlmClient` over the server's chat endpoint, with tools in schema mode.

Speaks plain HTTP on the background loop instead of going through a vendor's SDK: the schema mode needs
the raw request anyway, and a base install then runs a local model without any SDK.
"""

import asyncio
import weakref
from typing import Any, cast

from agency.agent import background
from agency.agent.events import ToolCall, Usage
from agency.agent.llm import FinishReason, LlmRequest, LlmResponse
from agency.agent.providers import schema_mode
from agency.agent.providers.local import Endpoint, endpoint_for
from agency.errors import ContextOverflow, ModelError, ModelOutputInvalid, ModelRefused, ModelUnavailable

_TIMEOUT = 600.0
_CONNECT = 10.0
_PASSED = ("temperature", "top_p", "top_k", "seed", "stop", "presence_penalty", "frequency_penalty")


class LocalClient:
    """A client for `local:<name>`; the server is found or started at the first request.

    Settings: `max_tokens` (512), `temperature` (0), `seed` (1), `timeout` in seconds once the model's
    slot is had (600), `calls_per_tool` in a turn (1).
    """

    output_mode = "native"

    def __init__(self, name: str) -> None:
        self.name = name
        self.model_name = f"local:{name}"

    def generate(self, request: LlmRequest) -> LlmResponse:
        """Ask once; a tool call that only repeats an answered one is asked again without that tool."""
        endpoint = endpoint_for(self.name)
        banned: frozenset[str] = frozenset()
        spent = Usage()
        while True:
            open_ = schema_mode.choices(request, banned)
            answer = background.run(_ask(endpoint, _body(request, open_), _timeout(request)))
            response = self._read(answer, request)
            spent = spent + (response.usage or Usage())
            call = response.content[0]
            if not isinstance(call, ToolCall) or not schema_mode.repeats(call, request.contents):
                response.usage = spent
                return response
            banned = banned | {call.name}

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


def _timeout(request: LlmRequest) -> float:
    return float(request.settings.get("timeout") or _TIMEOUT)


def _usage(told: dict[str, Any]) -> Usage:
    details = told.get("prompt_tokens_details") or {}
    return Usage(
        model_calls=1,
        input_tokens=int(told.get("prompt_tokens") or 0),
        output_tokens=int(told.get("completion_tokens") or 0),
        cached_tokens=int(details.get("cached_tokens") or 0),
        cost=0.0,
    )


_clients: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Any]" = weakref.WeakKeyDictionary()
_gates: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]" = weakref.WeakKeyDictionary()


async def _ask(endpoint: Endpoint, body: dict[str, Any], timeout: float) -> dict[str, Any]:
    """Post when the server's one slot is ours: the time spent queueing must not count as a stall."""
    import httpx

    here = asyncio.get_running_loop()
    client = _clients.get(here)
    if client is None:
        client = _clients[here] = httpx.AsyncClient(timeout=httpx.Timeout(None, connect=_CONNECT))
    url = f"{endpoint.url}/v1/chat/completions"
    headers = {"Authorization": f"Bearer {endpoint.key}"}
    async with _gates.setdefault(here, asyncio.Lock()):
        try:
            async with asyncio.timeout(timeout):
                reply = await client.post(url, json=body, headers=headers)
        except TimeoutError as exc:
            raise ModelUnavailable(f"the local model gave no answer within {timeout:g} s") from exc
        except httpx.HTTPError as exc:
            what = type(exc).__name__
            raise ModelUnavailable(f"the local model's server cannot be reached ({what})", 2.0) from exc
    return _checked(reply)


def _checked(reply: Any) -> dict[str, Any]:
    try:
        body: Any = reply.json()
    except ValueError:
        body = None
    if reply.status_code != 200:
        raise _error(reply.status_code, body)
    if not isinstance(body, dict):
        raise ModelOutputInvalid("the local server's answer is no JSON object", raw=reply.text[:2000])
    return cast("dict[str, Any]", body)


def _error(status: int, body: Any) -> ModelError:
    error: Any = cast("dict[str, Any]", body).get("error") if isinstance(body, dict) else None
    told: dict[str, Any] = cast("dict[str, Any]", error) if isinstance(error, dict) else {}
    message = str(told.get("message") or f"status {status}")[:500]
    if told.get("type") == "exceed_context_size_error":
        return ContextOverflow(f"local model: {message}")
    if status in {429, 503} or status >= 500:
        return ModelUnavailable(f"local model: {message}", 1.0)
    return ModelRefused(f"local model: {message}")

"""The local server's chat endpoint over HTTP: whole answers and streamed ones, one request at a time.

Works on the background loop. Time that is spent waiting for the server's one slot is no stall.
"""

import asyncio
import json
import weakref
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

from agency.agent.providers.local import Endpoint
from agency.errors import ContextOverflow, ModelError, ModelOutputInvalid, ModelRefused, ModelUnavailable

if TYPE_CHECKING:
    import httpx

CHAT = "/v1/chat/completions"
_CONNECT = 10.0
_SIGN = 1.0

_clients: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Any]" = weakref.WeakKeyDictionary()
_gates: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]" = weakref.WeakKeyDictionary()


async def ask(endpoint: Endpoint, body: dict[str, Any], timeout: float, path: str = CHAT) -> dict[str, Any]:
    """The answer to one request; `timeout` counts from the moment at which the slot is had."""
    import httpx

    async with _gate():
        try:
            async with asyncio.timeout(timeout):
                reply = await _client().send(_request(endpoint, body, path))
        except TimeoutError as exc:
            raise ModelUnavailable(f"the local model gave no answer within {timeout:g} s") from exc
        except httpx.HTTPError as exc:
            raise _unreachable(exc) from exc
    return _checked(reply)


async def chunks(
    endpoint: Endpoint, body: dict[str, Any], first: float, then: float
) -> AsyncIterator[dict[str, Any] | None]:
    """The chunks of a streamed answer, and before them `None` now and then while others have the slot.

    Waits `first` seconds for the first chunk and `then` for each other.
    """
    import httpx

    gate = _gate()
    while not await _taken(gate):
        yield None
    try:
        async with aclosing(_stream(endpoint, body)) as stream:
            seconds = first
            while (chunk := await _next(stream, seconds)) is not None:
                yield chunk
                seconds = then
    except httpx.HTTPError as exc:
        raise _unreachable(exc) from exc
    finally:
        gate.release()


async def _taken(gate: asyncio.Lock) -> bool:
    try:
        async with asyncio.timeout(_SIGN):
            return await gate.acquire()
    except TimeoutError:
        return False


async def _next(stream: AsyncGenerator[dict[str, Any]], seconds: float) -> dict[str, Any] | None:
    try:
        async with asyncio.timeout(seconds):
            return await anext(stream, None)
    except TimeoutError as exc:
        raise ModelUnavailable(f"the local model's stream stalled: nothing came for {seconds:g} s") from exc


async def _stream(endpoint: Endpoint, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any]]:
    asked = {**body, "stream": True, "stream_options": {"include_usage": True}}
    reply = await _client().send(_request(endpoint, asked), stream=True)
    try:
        if reply.status_code != 200:
            await reply.aread()
            _checked(reply)
        async for line in reply.aiter_lines():
            if chunk := _chunk(line):
                yield chunk
    finally:
        await reply.aclose()


def _chunk(line: str) -> dict[str, Any] | None:
    """The JSON of one line of the stream; `None` for a line that holds none."""
    field, _, told = line.partition(":")
    told = told.strip()
    if field not in ("data", "error") or not told or told == "[DONE]":
        return None
    try:
        chunk: Any = json.loads(told)
    except ValueError as exc:
        raise ModelUnavailable("the local server's stream holds no JSON") from exc
    if field == "error" or not isinstance(chunk, dict) or "error" in chunk:
        raise _error(500, chunk if field == "data" else {"error": chunk})
    return cast("dict[str, Any]", chunk)


def _gate() -> asyncio.Lock:
    return _gates.setdefault(asyncio.get_running_loop(), asyncio.Lock())


def _client() -> "httpx.AsyncClient":
    import httpx

    here = asyncio.get_running_loop()
    client = _clients.get(here)
    if client is None:
        client = _clients[here] = httpx.AsyncClient(timeout=httpx.Timeout(None, connect=_CONNECT))
    return client


def _request(endpoint: Endpoint, body: dict[str, Any], path: str = CHAT) -> "httpx.Request":
    headers = {"Authorization": f"Bearer {endpoint.key}"}
    return _client().build_request("POST", f"{endpoint.url}{path}", json=body, headers=headers)


def _unreachable(error: Exception) -> ModelUnavailable:
    return ModelUnavailable(f"the local model's server cannot be reached ({type(error).__name__})", 2.0)


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

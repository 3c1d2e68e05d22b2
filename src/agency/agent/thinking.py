"""Asks the model: hooks, retries, what is kept of each call. A failed call becomes an event and a value."""

import hashlib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agency.agent.context import ExecutionContext
from agency.agent.events import ContentItem, Event, EventError, Message, ToolCall, Usage
from agency.agent.history import History
from agency.agent.llm import Delta, FinishReason, LlmClient, LlmRequest, LlmResponse
from agency.agent.record import Record
from agency.agent.stopping import stop_signal
from agency.agent.text import DEEPEST, ERROR_LIMIT, clean, clean_json, cut, is_clean, is_deep
from agency.errors import ContextOverflow, ModelError, ModelOutputInvalid, ModelRefused, ModelUnavailable

if TYPE_CHECKING:
    from agency.agent.agent import Agent

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
INVALID_LIMIT = 10_000
Shrink = Callable[[ExecutionContext, LlmRequest], LlmRequest | None]
_CODES: dict[type[ModelError], str] = {
    ModelUnavailable: "model_unavailable",
    ModelRefused: "model_refused",
    ModelOutputInvalid: "model_output_invalid",
    ContextOverflow: "context_overflow",
}


@dataclass(slots=True)
class Failure:
    """The model gave no answer: a code, a message that is safe to show, when a retry makes sense."""

    code: str
    message: str
    retry_after: float | None = None


@dataclass(slots=True)
class Asked:
    """The model's answer and the event that will record it."""

    response: LlmResponse
    event: Event


def ask(agent: "Agent", record: Record, request: LlmRequest) -> Asked | Failure:
    """One answer, after as many retries as the agent allows where the model is unavailable.

    A request that is too large for the model is made smaller once.
    """
    failures = 0
    while True:
        agent.scope.checkpoint()
        started = time.perf_counter()
        try:
            response = _answer(agent, record, request)
        except ModelOutputInvalid as exc:
            return _unreadable(record, request, exc, started)
        except ContextOverflow as exc:
            failure = note(record, exc)
            smaller = _smaller(agent, record, request)
            if smaller is None:
                return failure
            request = smaller
        except ModelError as exc:
            failure = note(record, exc)
            failures += 1
            if failure.code != "model_unavailable" or failures > agent.model_retries:
                return failure
            pause(agent, failure.retry_after, failures)
        else:
            return _record_of(record, request, response, started)


def _smaller(agent: "Agent", record: Record, request: LlmRequest) -> LlmRequest | None:
    """The request with less of the history, unless it is that already or its builder knows no way."""
    shrink: Shrink | None = getattr(agent.request_builder, "shrink", None)
    if shrink is None or (request.selection or {}).get("shrunk"):
        return None
    return shrink(record.context, request)


def note(record: Record, error: ModelError, call: dict[str, Any] | None = None) -> Failure:
    """Record a failed model call as an event. Such an event is never recalled, so its key is its own."""
    failure = Failure(_code(error), _message(error), getattr(error, "retry_after", None))
    told = EventError(code=failure.code, message=failure.message)
    event = record.event([], usage=Usage(model_calls=1), error=told, call=call)
    record.write(record.key(f"model-error:{event.id}"), event)
    return failure


def pause(agent: "Agent", retry_after: float | None, failures: int) -> None:
    """Wait as long as the provider asks, or a growing time with jitter, and stay stoppable."""
    longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (failures - 1))
    seconds = random.uniform(longest / 2, longest) if retry_after is None else retry_after
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        agent.scope.checkpoint()
        time.sleep(min(0.1, left))


def answer_aside(agent: "Agent", client: LlmClient, request: LlmRequest) -> LlmResponse:
    """One answer beside those of the turn, such as a summary: it can be stopped, and is not retried."""
    agent.scope.checkpoint()
    token = stop_signal.set(agent.scope.is_cancelled)
    try:
        return client.generate(request)
    finally:
        stop_signal.reset(token)


def _answer(agent: "Agent", record: Record, request: LlmRequest) -> LlmResponse:
    hook = agent.hooks.before_llm
    instead = hook(record.context, request) if hook is not None else None
    if instead is not None:
        return instead
    if record.history.open_calls:
        raise AssertionError("a tool call has no result; repair() must run before the model is asked")
    token = stop_signal.set(agent.scope.is_cancelled)
    try:
        if agent.hooks.on_delta is not None:
            return _watched(agent, request, agent.hooks.on_delta)
        return agent.think(request)
    finally:
        stop_signal.reset(token)


def _watched(agent: "Agent", request: LlmRequest, on_delta: Callable[[Delta], None]) -> LlmResponse:
    """The answer in pieces, where the client can give it so."""
    stream = getattr(agent.llm, "stream", None)
    if stream is None:
        return agent.think(request)
    from agency.agent.streaming import collect  # threads, which runs that nobody watches have no use for

    return collect(lambda: stream(request), on_delta, request.settings, agent.scope.is_cancelled)


def _record_of(record: Record, request: LlmRequest, response: LlmResponse, started: float) -> Asked:
    content = _usable(response.content, record)
    usage = response.usage or Usage(model_calls=1)
    if usage.model_calls == 0:
        usage = usage.model_copy(update={"model_calls": 1})
    event = record.event(
        content,
        usage=usage,
        call=_call(record, request, response.model, response.finish_reason, started),
    )
    return Asked(LlmResponse(content, usage, response.finish_reason, response.model), event)


def _unreadable(record: Record, request: LlmRequest, error: ModelOutputInvalid, started: float) -> Asked:
    """An answer that the client could not read: recorded as the answer of this step, and then corrected."""
    raw = clean(error.raw)
    content: list[ContentItem] = [Message(role="assistant", content=raw)] if raw.strip() else []
    event = record.event(
        content,
        usage=Usage(model_calls=1),
        error=EventError(code=_code(error), message=_message(error)),
        call=_call(record, request, None, "error", started),
    )
    return Asked(LlmResponse([], event.usage, "error"), event)


def _call(
    record: Record, request: LlmRequest, model: str | None, reason: FinishReason | None, started: float
) -> dict[str, Any]:
    """What is kept of a call: enough to say what was sent, without sending it to storage again."""
    return {
        "model": model or request.model,
        "finish_reason": reason,
        "duration": round((time.perf_counter() - started) * 1e6) / 1e6,
        "request": request.selection or selected(request, record.history),
    }


def selected(request: LlmRequest, history: History) -> dict[str, Any]:
    """What a builder sent that does not tell: how much of the history, and the digest of all of it."""
    digest = hashlib.sha256()
    for item in request.contents:
        digest.update(item.__pydantic_serializer__.to_json(item))
    sent = {"items": len(request.contents), "of": len(history.contents)}
    return {**sent, "digest": digest.hexdigest()}


def _usable(content: list[ContentItem], record: Record) -> list[ContentItem]:
    """The content as it may be stored: clean texts, call ids that no earlier call has, no results."""
    taken = record.history.call_ids
    own: set[str] = set()
    usable: list[ContentItem] = []
    for item in content:
        if item.type == "tool_call":
            item = _usable_call(item, taken, own)
            own.add(item.tool_call_id)
        elif item.type == "message":
            text = clean(item.content)
            item = item if text is item.content else item.model_copy(update={"content": text})
        elif item.type == "tool_result":
            continue
        elif item.type == "provider" and not is_clean(item.data):
            item = item.model_copy(update={"data": clean_json(item.data)})
        usable.append(item)
    return usable


def _usable_call(call: ToolCall, taken: set[str], own: set[str]) -> ToolCall:
    identity = call.tool_call_id
    free = is_clean(identity) and _is_free(identity, taken, own)
    if free and call.invalid is None and is_clean(call.name) and is_clean(call.arguments):
        return call
    if not free:
        identity = _freed(identity, taken, own)
    invalid = call.invalid
    if invalid is None and is_deep(call.arguments):
        invalid = f"nested more than {DEEPEST} deep"
    return ToolCall(
        tool_call_id=identity,
        name=clean(call.name),
        arguments=clean_json(call.arguments) if invalid is None else {},
        invalid=None if invalid is None else cut(clean(invalid), INVALID_LIMIT),
    )


def _is_free(identity: str, taken: set[str], own: set[str]) -> bool:
    # Calls of runs inside this one are known as `outer/inner`.
    return bool(identity) and "/" not in identity and identity not in taken and identity not in own


def _freed(identity: str, taken: set[str], own: set[str]) -> str:
    """The identity that stands for one that may not be used, or is used already."""
    free = first = clean(identity).replace("/", "-") or "call"
    number = len(taken)
    while free in taken or free in own:
        number += 1
        free = f"{first}-{number}"
    return free


def _code(error: ModelError) -> str:
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), "model_error")


def _message(error: ModelError) -> str:
    return cut(clean(str(error)) or type(error).__name__, ERROR_LIMIT)

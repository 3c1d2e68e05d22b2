"""An agent's event as rows and back: the event, the message that shows it, the body if it is too large.

An event whose content is larger than the limit holds a shortened one and names the blob that is whole.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import TypeAdapter

from agency.agent import events as core
from agency.agent.payloads import Body
from agency.agent.text import cut
from agency.execution.append import raw_uuid
from agency.execution.claims import database
from agency.execution.storable import as_json, models_json, storable, storable_json
from agency.models import Blob, Event
from agency.thread import store as thread_store

EVENT_LIMIT = 1_000_000
_SHOWN = 2_000
_CONTENT: TypeAdapter[list[core.ContentItem]] = TypeAdapter(list[core.ContentItem])


@dataclass(slots=True)
class EventRows:
    """What is inserted; numbers are counted back from the last one. `stored` is in bytes."""

    events: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    messages: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    blobs: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    stored: int = 0


def event_rows(
    key: str, events: Sequence[core.Event], limit: int = EVENT_LIMIT, native: bool = False
) -> EventRows:
    """The rows of the events that are recorded under `key`; `limit` is in characters of one's content.

    `native` says whether the database has UUIDs of its own.
    """
    rows = EventRows()
    for back, event in zip(range(len(events) - 1, -1, -1), events, strict=True):
        content, data = models_json(event.content), {"key": key}
        if content is None:
            event = core.Event.model_validate(_masked(event))
            content = as_json([item.model_dump(mode="json") for item in event.content])
        rows.stored += size(content)
        if len(content) > limit:
            body = Body(hashlib.sha256(content.encode()).hexdigest(), content)
            rows.blobs.append(blob_row(body))
            data["blob"] = body.sha256
            event = _shortened(event, body, limit)
            content = as_json([item.model_dump(mode="json") for item in event.content])
        rows.events.append(
            (
                back,
                raw_uuid(event.id, native),
                event.step,
                event.author,
                content,
                as_json(data),
                event.usage and event.usage.model_dump_json(),
                event.error and storable_json(event.error.model_dump(mode="json")),
                storable_json(event.call),
            )
        )
        if message := thread_store.message(event):
            rows.messages.append((back, back, *message))
    return rows


def blob_row(body: Body) -> tuple[Any, ...]:
    return body.sha256, size(body.text), body.text


def size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def core_events(rows: Iterable[Event]) -> list[core.Event]:
    """Content rows of one execution as the agent's events, whole."""
    found = list(rows)
    named = {sha256 for row in found if (sha256 := row.data.get("blob"))}
    blobs: dict[str, str] = {}
    if named:
        kept = Blob.objects.using(database()).filter(execution_id=found[0].execution_id, sha256__in=named)
        blobs = dict(kept.values_list("sha256", "content"))
    return [_core_event(row, blobs.get(row.data.get("blob", ""))) for row in found]


def _core_event(row: Event, whole: str | None) -> core.Event:
    return core.Event.model_validate(
        {
            "id": str(row.event_id),
            "execution_id": str(row.execution_id),
            "timestamp": row.timestamp,
            "author": row.author,
            "content": row.content if whole is None else _CONTENT.validate_json(whole),
            "step": row.step,
            "usage": row.usage,
            "error": row.error,
            "call": row.call,
        }
    )


def _masked(event: core.Event) -> dict[str, Any]:
    """The event as it is stored; one whose calls lose a secret says which, so that none is run without it."""
    said = event.model_dump(mode="json")
    body = storable(said)
    pairs = zip(said["content"], body["content"], strict=True)
    masked = [one["tool_call_id"] for one, kept in pairs if one["type"] == "tool_call" and one != kept]
    if masked:
        body["call"] = {**(body["call"] or {}), "masked": masked}
    return body


def _shortened(event: core.Event, body: Body, limit: int) -> core.Event:
    """The event with long texts cut, or, if it has too many texts for that to help, with a note only."""
    short = _cut_texts([item.model_dump(mode="json") for item in event.content], body.sha256)
    if len(as_json(short)) > limit:
        note = f"[{len(body.text):,} characters of content are not shown; they are kept as {body.sha256}]"
        role = "user" if event.author == "user" else "assistant"
        short = [{"type": "message", "role": role, "content": note}]
    return event.model_copy(update={"content": _CONTENT.validate_python(short)})


def _cut_texts(value: Any, sha256: str) -> Any:
    if isinstance(value, str):
        return cut(value, _SHOWN, f"the whole event is kept as {sha256}")
    if isinstance(value, dict):
        return {key: _cut_texts(item, sha256) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_cut_texts(item, sha256) for item in cast("list[Any]", value)]
    return value

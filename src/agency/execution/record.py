"""What an agent's run leaves behind: events with gapless numbers, their messages, and the step journal.

Each function is one fenced commit: a claim that was lost gets `StaleExecution` and leaves nothing.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connections

from agency.agent import events as core
from agency.enums import Effect, StepStatus
from agency.execution.append import EVENTS, INTENTS, MESSAGES, STEPS, append
from agency.execution.claims import Claim, database, settled, uuid_value
from agency.execution.storable import as_json, models_json, storable, storable_json
from agency.models import Event, Step
from agency.thread import store as thread_store


@dataclass(slots=True)
class Entry:
    """What a step leaves: its JSON result, and what it changed in scratchpad and state (`None`: nothing).

    `settles` are the keys of announced steps whose results are in its events.
    """

    key: str
    result: Any = None
    events: Sequence[core.Event] = ()
    scratch: list[list[Any]] = field(default_factory=list[list[Any]])
    state: dict[str, Any] | None = None
    settles: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Announced:
    """A step as it stands after its announcement: by whom it was announced, and whether it is done."""

    status: str
    claim_id: uuid.UUID


def intend(claim: Claim, key: str, effect: Effect, idempotency_key: str) -> Announced:
    """Announce a call, or find that an earlier claimer has announced it; returns the entry as it stands."""

    def write() -> Announced:
        status, claim_id = append(claim, 0, [(INTENTS, [(key, effect.value, idempotency_key, "[]")])])
        return Announced(status, uuid.UUID(str(claim_id)))

    def find() -> Announced | None:
        step = _step(claim, key)
        return step and Announced(step.status, step.claim_id)

    return settled(write, find, single=True)


def record(claim: Claim, entry: Entry) -> None:
    """Record what a step gave, with its events and their messages."""
    events, messages = _rows(entry)
    settled_by_events = [(key, 0, None, "[]", None) for key in entry.settles]
    additions = [(EVENTS, events), (MESSAGES, messages), (STEPS, [*settled_by_events, _step_row(entry)])]

    def write() -> bool:
        append(claim, len(events), additions)
        return True

    def find() -> bool | None:
        step = _step(claim, entry.key)
        return True if step is not None and step.status == StepStatus.DONE.value else None

    settled(write, find, single=True)


def _step(claim: Claim, key: str) -> Step | None:
    return (
        Step.objects.using(database())
        .filter(execution_id=claim.execution_id, key=key, claim_id=claim.claim_id)
        .first()
    )


def _step_row(entry: Entry) -> tuple[Any, ...]:
    back = 0 if entry.events else None
    return (
        entry.key,
        back,
        storable_json(entry.result),
        storable_json(entry.scratch) if entry.scratch else "[]",
        storable_json(entry.state),
    )


def _rows(entry: Entry) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """The rows of an entry's events and messages, the numbers counted back from the last one."""
    connection = connections[database()]
    events: list[tuple[Any, ...]] = []
    messages: list[tuple[Any, ...]] = []
    for back, event in zip(range(len(entry.events) - 1, -1, -1), entry.events, strict=True):
        content = models_json(event.content)
        if content is None:
            event = core.Event.model_validate(_body(event))
            content = as_json([item.model_dump(mode="json") for item in event.content])
        events.append(
            (
                back,
                uuid_value(connection, event.id),
                event.step,
                event.author,
                content,
                storable_json({"key": entry.key}),
                event.usage and event.usage.model_dump_json(),
                event.error and storable_json(event.error.model_dump(mode="json")),
                storable_json(event.call),
            )
        )
        if message := thread_store.message(event):
            messages.append((back, back, *message))
    return events, messages


def _body(event: core.Event) -> dict[str, Any]:
    """The event as it is stored; one whose calls lose a secret says which, so that none is run without it."""
    said = event.model_dump(mode="json")
    body = storable(said)
    pairs = zip(said["content"], body["content"], strict=True)
    masked = [one["tool_call_id"] for one, kept in pairs if one["type"] == "tool_call" and one != kept]
    if masked:
        body["call"] = {**(body["call"] or {}), "masked": masked}
    return body


def core_event(row: Event) -> core.Event:
    """A content row as the agent's event."""
    return core.Event.model_validate(
        {
            "id": str(row.event_id),
            "execution_id": str(row.execution_id),
            "timestamp": row.timestamp,
            "author": row.author,
            "content": row.content,
            "step": row.step,
            "usage": row.usage,
            "error": row.error,
            "call": row.call,
        }
    )

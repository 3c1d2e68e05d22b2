"""What an agent's run leaves behind: events with gapless numbers, their messages, and the step journal.

Each function is one fenced commit: a claim that was lost gets `StaleExecution` and leaves nothing.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connections

from agency.agent import events as core
from agency.agent.payloads import Body
from agency.enums import Effect, StepStatus
from agency.execution.append import BLOBS, EVENTS, INTENTS, JOURNAL_VERSION, MESSAGES, STEPS, append
from agency.execution.claims import Claim, database, settled
from agency.execution.event_rows import EVENT_LIMIT, blob_row, event_rows, size
from agency.execution.signals import say_written
from agency.execution.storable import storable_json
from agency.models import Blob, Event, Step


def knows_journal(version: int) -> bool:
    """Whether this code can go on with a journal whose newest entries have this form."""
    return 1 <= version <= JOURNAL_VERSION


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

    @property
    def needs_step(self) -> bool:
        """Whether it is more than its events, which carry the key themselves."""
        return not self.events or self.result is not None or bool(self.scratch) or self.state is not None


@dataclass(frozen=True, slots=True)
class Announced:
    """A step as it stands after its announcement: by whom it was announced, and whether it is done."""

    status: str
    claim_id: uuid.UUID


def intend(claim: Claim, key: str, effect: Effect, idempotency_key: str) -> Announced:
    """Announce a call, or find that an earlier claimer has announced it; returns the entry as it stands."""
    connection = connections[database()]

    def write() -> Announced:
        status, claim_id = append(
            connection, claim, 0, [(INTENTS, [(key, effect.value, idempotency_key, "[]")])]
        )
        return Announced(status, uuid.UUID(str(claim_id)))

    def find() -> Announced | None:
        step = _step(claim, key)
        return step and Announced(step.status, step.claim_id)

    return settled(write, find, single=True)


def record(claim: Claim, entry: Entry, event_limit: int = EVENT_LIMIT) -> int:
    """Record what a step gave, with its events and their messages; returns how many bytes these hold."""
    alias = database()
    connection = connections[alias]
    native = connection.features.has_native_uuid_field
    rows = event_rows(entry.key, entry.events, event_limit, native)
    steps = [(key, 0, None, "[]", None) for key in entry.settles]
    if entry.needs_step:
        steps.append(_step_row(entry))
    additions = [
        (EVENTS, rows.events),
        (MESSAGES, rows.messages),
        (BLOBS, rows.blobs),
        (STEPS, steps),
    ]

    def write() -> bool:
        last = append(connection, claim, len(rows.events), additions)[0]
        if rows.events:
            say_written(alias, claim.execution_id, int(last), len(rows.events))
        return True

    def find() -> bool | None:
        if entry.events:
            return _has_event(claim, entry.events[-1].id) or None
        step = _step(claim, entry.key)
        return True if step is not None and step.status == StepStatus.DONE.value else None

    settled(write, find, single=True)
    return rows.stored


def keep(claim: Claim, body: Body) -> int:
    """Keep a whole text beside what was cut; returns what `record` does."""
    row = blob_row(body)
    connection = connections[database()]

    def write() -> bool:
        append(connection, claim, 0, [(BLOBS, [row])])
        return True

    def find() -> bool | None:
        kept = Blob.objects.using(database()).filter(execution_id=claim.execution_id, sha256=body.sha256)
        return True if kept.exists() else None

    settled(write, find, single=True)
    return size(body.text)


def _step(claim: Claim, key: str) -> Step | None:
    return (
        Step.objects.using(database())
        .filter(execution_id=claim.execution_id, key=key, claim_id=claim.claim_id)
        .first()
    )


def _has_event(claim: Claim, event_id: str) -> bool:
    rows = Event.objects.using(database()).filter(execution_id=claim.execution_id, event_id=event_id)
    return rows.exists()


def _step_row(entry: Entry) -> tuple[Any, ...]:
    return (
        entry.key,
        0,
        storable_json(entry.result),
        storable_json(entry.scratch) if entry.scratch else "[]",
        storable_json(entry.state),
    )

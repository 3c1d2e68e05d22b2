"""The one door through which facts enter the log: events with gapless numbers, and the step journal.

Secrets are masked and unwritable characters removed here. Each function is one fenced write: a claim
that was lost gets `StaleExecution` and leaves nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connections

from agency.agent import events as core
from agency.agent.text import clean_json, to_payload
from agency.enums import Effect, EventKind, ExecutionStatus, StepStatus
from agency.errors import StaleExecution
from agency.execution.claims import Claim, database, settled, uuid_value
from agency.execution.rows import NOW, as_json, insert
from agency.models import Event, Execution, Message, Step
from agency.redaction import redact
from agency.thread import store as thread_store

_TABLE = Execution._meta.db_table
_NUMBER = (
    f"UPDATE {_TABLE} SET event_seq = event_seq + %s "
    f"WHERE id = %s AND claim_id = %s AND status = '{ExecutionStatus.IN_PROGRESS}' "
    "RETURNING event_seq, thread_id"
)


@dataclass(slots=True)
class Entry:
    """What a step leaves: its JSON result, and what it changed in scratchpad and state (`None`: nothing)."""

    key: str
    result: Any = None
    events: Sequence[core.Event] = ()
    scratch: list[list[Any]] = field(default_factory=list[list[Any]])
    state: dict[str, Any] | None = None


def storable(value: Any) -> Any:
    """A JSON value as it may be stored: nothing secret, nothing that a database refuses."""
    return clean_json(redact(value))


def intend(claim: Claim, key: str, effect: Effect, idempotency_key: str) -> Step:
    """Announce a call, or find that an earlier claimer has announced it; returns the entry as it stands."""

    def write() -> Step:
        _number(claim, 0)
        step, _ = Step.objects.using(database()).get_or_create(
            execution_id=claim.execution_id,
            key=key,
            defaults={
                "status": StepStatus.INTENT.value,
                "effect": effect.value,
                "idempotency_key": idempotency_key,
                "claim_id": claim.claim_id,
            },
        )
        return step

    return settled(write, lambda: _step(claim, key))


def record(claim: Claim, entry: Entry) -> None:
    """Record what a step gave, with its events and their messages, in one transaction."""

    def write() -> bool:
        last = _write(claim, entry)
        insert(database(), Step, [_step_row(claim, entry, last)], unless=("execution_id", "key"))
        return True

    def find() -> bool | None:
        step = _step(claim, entry.key)
        return True if step is not None and step.status == StepStatus.DONE.value else None

    settled(write, find)


def _step_row(claim: Claim, entry: Entry, last: int) -> dict[str, Any]:
    scratch = [[name, storable(to_payload(value))] for name, value in entry.scratch]
    return {
        "execution_id": _uuid(claim.execution_id),
        "key": entry.key,
        "status": StepStatus.DONE.value,
        "claim_id": _uuid(claim.claim_id),
        "event_seq": last if entry.events else None,
        "result": as_json(storable(entry.result)),
        "scratch": as_json(scratch),
        "state": None if entry.state is None else as_json(storable(entry.state)),
        "created_at": NOW,
        "done_at": NOW,
    }


def _step(claim: Claim, key: str) -> Step | None:
    return (
        Step.objects.using(database())
        .filter(execution_id=claim.execution_id, key=key, claim_id=claim.claim_id)
        .first()
    )


def _write(claim: Claim, entry: Entry) -> int:
    last, thread_id = _number(claim, len(entry.events))
    if not entry.events:
        return last
    bodies = [_body(event) for event in entry.events]
    numbered = list(enumerate(bodies, last - len(bodies) + 1))
    insert(database(), Event, [_event_row(claim, seq, body, entry.key) for seq, body in numbered])
    said = thread_store.messages((seq, core.Event.model_validate(body)) for seq, body in numbered)
    if said:
        fixed = {"thread_id": thread_id, "iteration": claim.iteration, "created_at": NOW}
        insert(database(), Message, [{**fixed, **message} for message in said])
    return last


def _body(event: core.Event) -> dict[str, Any]:
    """The event as it is stored; one whose calls lose a secret says which, so that none is run without it."""
    said = event.model_dump(mode="json")
    body = storable(said)
    pairs = zip(said["content"], body["content"], strict=True)
    masked = [one["tool_call_id"] for one, kept in pairs if one["type"] == "tool_call" and one != kept]
    if masked:
        body["call"] = {**(body["call"] or {}), "masked": masked}
    return body


def _number(claim: Claim, count: int) -> tuple[int, Any]:
    """Take `count` numbers under the row's lock; returns the last and the thread."""
    connection = connections[database()]
    values = [count, uuid_value(connection, claim.execution_id), uuid_value(connection, claim.claim_id)]
    with connection.cursor() as cursor:
        cursor.execute(_NUMBER, values)
        rows = cursor.fetchall()
    if not rows:
        raise StaleExecution(f"{claim} is no longer claimed here: nothing was written")
    return rows[0]


def _event_row(claim: Claim, seq: int, body: dict[str, Any], key: str) -> dict[str, Any]:
    return {
        "execution_id": _uuid(claim.execution_id),
        "seq": seq,
        "event_id": _uuid(body["id"]),
        "kind": EventKind.CONTENT.value,
        "generation": claim.generation,
        "iteration": claim.iteration,
        "step": body["step"],
        "author": body["author"],
        "content": as_json(body["content"]),
        "data": as_json({"key": key}),
        "usage": as_json(body["usage"]),
        "error": as_json(body["error"]),
        "call": as_json(body["call"]),
        "timestamp": NOW,
    }


def _uuid(value: Any) -> Any:
    return uuid_value(connections[database()], value)


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

"""Takes what somebody outside tells a mission: a wait for it ends at once, else it is kept for the next."""

import uuid
from dataclasses import dataclass
from typing import Any

from agency.agent.text import is_deep
from agency.enums import EventKind
from agency.errors import InvalidInput
from agency.execution.claims import database, locked, settled
from agency.execution.metadata import WAIT
from agency.execution.storable import storable, storable_json
from agency.execution.store import lifecycle_event
from agency.mission import waiting, waits
from agency.mission.decision import LONGEST_SIGNAL, is_signal_name
from agency.models import Execution, Signal
from agency.models.clock import Now

LARGEST_PAYLOAD = 65_536
MOST_UNHEARD = 1_000


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a signal: stored, and whether it `ended_wait`; or `refused` says why it was not."""

    signal: Signal | None = None
    ended_wait: bool = False
    refused: str | None = None


def send(execution: Execution, name: str, payload: Any = None, by: Any = None) -> Sent:
    """Tell a loop something, in the name of the user `by`; the agent hears it as data.

    `payload` is any JSON value of at most 64 kB. `InvalidInput` names what does not fit; an execution that
    has ended, or that can never wait, refuses.
    """
    name, payload = _checked_name(name), _checked_payload(payload)
    signal_id = uuid.uuid4()

    def write() -> Sent:
        row = locked(Execution.objects.using(database()).filter(pk=execution.pk), f"execution {execution.pk}")
        refused = _refusal(row)
        if refused is not None:
            return Sent(refused=refused)
        # By the clock of the iterations' ends, and under the same lock: which came first is beyond doubt.
        signal = Signal.objects.using(database()).create(
            id=signal_id, execution=row, name=name, payload=payload, sent_by=by, created_at=Now()
        )
        ended = _tell(row, signal, by)
        signal.refresh_from_db()
        return Sent(signal, ended)

    return settled(write, lambda: _found(signal_id))


def _tell(row: Execution, signal: Signal, by: Any) -> bool:
    """Put the signal on record and end the wait for it; `False` if nothing waits for it."""
    data = {"signal": str(signal.pk), "name": signal.name, "who": by and by.get_username()}
    lifecycle_event(row, EventKind.SIGNAL_RECEIVED, data)
    if not waiting.is_waiting_for(row, signal.name):
        return False
    kept = row.metadata[WAIT]
    waiting.consume(signal, row)
    waiting.end_unclaimed(row, kept, waits.by_signal(kept, signal.payload), by)
    return True


def _refusal(row: Execution) -> str | None:
    if row.is_terminal:
        return f"The execution is {row.status}; it takes no more signals."
    if row.cancel_requested_at is not None:
        return "The execution is being cancelled; it takes no more signals."
    if row.loop_status is None:
        return "The execution is no loop, so it never waits for a signal."
    unheard = Signal.objects.using(database()).filter(execution=row, consumed_iteration=None)
    if unheard.count() >= MOST_UNHEARD:
        return f"The execution has {MOST_UNHEARD:,} signals that it has not heard yet; it takes no more."
    return None


def _found(signal_id: uuid.UUID) -> Sent | None:
    """After a COMMIT of unknown outcome: whether the signal is there."""
    signal = Signal.objects.using(database()).filter(pk=signal_id).first()
    return None if signal is None else Sent(signal, signal.consumed_iteration is not None)


def _checked_name(name: Any) -> str:
    text = name.strip() if isinstance(name, str) else ""
    if not is_signal_name(text):
        raise _invalid("name", f"must be a printable text of 1 to {LONGEST_SIGNAL} characters without '/'")
    return text


def _checked_payload(payload: Any) -> Any:
    if is_deep(payload):
        raise _invalid("payload", "is nested too deeply")
    try:
        text = storable_json(payload) or ""
    except TypeError as exc:
        raise _invalid("payload", f"must be JSON: {exc}") from None
    if (size := len(text.encode("utf-8", "replace"))) > LARGEST_PAYLOAD:
        raise _invalid("payload", f"has {size:,} bytes as JSON; at most {LARGEST_PAYLOAD:,} are taken")
    return storable(payload)


def _invalid(path: str, message: str) -> InvalidInput:
    return InvalidInput(f"{path}: {message}", [{"path": path, "message": message}])

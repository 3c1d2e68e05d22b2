"""What sockets are told: one small message for an event that was written, never the history.

A notice says what changed and up to which `seq`; who wants more reads the events. Knows no framework.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any

from agency.agent.text import cut

LARGEST = 2_000
"""Bytes of a notice as JSON."""
LONGEST_TEXT = 300
CONTENT = "execution_events"
"""The type of the notice that stands for an agent's events: there are some, up to `seq`."""
_KEPT_BACK = frozenset({"payload", "content", "messages"})
_GROUP = re.compile(r"[A-Za-z0-9._-]{1,60}")

Notice = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Whose:
    """An execution as its notices name it; `mission` is `None` for a definition's."""

    execution: str
    mission: str | None = None


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """A lifecycle event: a row that is no agent's content, as much of it as a notice may hold."""

    seq: int
    kind: str
    iteration: int
    timestamp: datetime
    data: dict[str, Any] = field(default_factory=dict[str, Any])


def notice(whose: Whose, event: Lifecycle) -> Notice:
    """The notice of one lifecycle event: its name, where it belongs, and what is short in its data."""
    made = {
        "type": event.kind,
        "execution": whose.execution,
        "mission": whose.mission,
        "seq": event.seq,
        "iteration": event.iteration,
        "at": event.timestamp.isoformat(),
    }
    room = LARGEST - _size(made)
    for key, value in sorted(_short(event.data, made), key=lambda item: _size(item[1])):
        # The comma between two pairs is the only byte that a pair does not hold itself.
        room -= _size({key: value})
        if room < 0:
            break
        made[key] = value
    return made


def notices(whose: Whose, first: int, last: int, events: Sequence[Lifecycle]) -> list[Notice]:
    """The notices of the events numbered `first` to `last`, in their order.

    `events` are the lifecycle events among them; the others are an agent's, and those that follow each other
    share one notice with the last number.
    """
    told: list[Notice] = []
    before = first - 1
    for event in events:
        if event.seq > before + 1:
            told.append(_content(whose, event.seq - 1))
        told.append(notice(whose, event))
        before = event.seq
    if last > before:
        told.append(_content(whose, last))
    return told


def execution_group(execution: object) -> str:
    """The group of those who watch one execution: they get each of its notices."""
    return f"execution.{execution}"


def missions_group(owner: object) -> str:
    """The group of those who watch an owner's missions: they get the lifecycle of every execution of one.

    A primary key that no group's name may hold is replaced by its hash.
    """
    name = str(owner)
    return f"missions.{name if _GROUP.fullmatch(name) else sha256(name.encode()).hexdigest()[:32]}"


def _content(whose: Whose, seq: int) -> Notice:
    return {"type": CONTENT, "execution": whose.execution, "mission": whose.mission, "seq": seq}


def _short(data: dict[str, Any], taken: Iterable[str]) -> list[tuple[str, Any]]:
    """What is a single value; what is nested may be any size, and is read from the event."""
    return [
        (key, cut(value, LONGEST_TEXT) if isinstance(value, str) else value)
        for key, value in data.items()
        if key not in taken and key not in _KEPT_BACK and isinstance(value, str | int | float | bool)
    ]


def _size(value: Any) -> int:
    return len(json.dumps(value))

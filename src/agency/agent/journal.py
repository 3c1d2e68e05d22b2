"""The seam through which a run is made durable. The default does nothing; the runtime brings a real one.

Everything that a run adds to its record passes `record`; before it does the work again, a run asks
`recall`. So a run that is started anew over a filled journal replays what was recorded and pays for
nothing twice. The core knows only this protocol.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from agency.agent.events import Event
from agency.agent.payloads import Payloads
from agency.agent.reservations import Reservations
from agency.enums import Effect


@dataclass(slots=True)
class Recorded:
    """What the journal holds under a key: a JSON result (tool calls) and the events written with it."""

    result: Any
    events: list[Event]


class Journal(Protocol):
    """Keys are `turn:step:...` within a scope (`execution:iteration`), see `agency.agent.agent`.

    `settles` of a record are the keys of announced calls that have their results in it.
    """

    scope: str

    def recall(self, key: str) -> Recorded | None: ...

    def intend(self, key: str, effect: Effect, idempotency_key: str) -> None: ...

    def record(self, key: str, result: Any, events: Sequence[Event], settles: Sequence[str] = ()) -> None: ...


class NullJournal:
    """Remembers nothing: the journal of a run in bare Python."""

    scope = ""

    def recall(self, key: str) -> Recorded | None:
        return None

    def intend(self, key: str, effect: Effect, idempotency_key: str) -> None:
        return None

    def record(self, key: str, result: Any, events: Sequence[Event], settles: Sequence[str] = ()) -> None:
        return None


def never_stop() -> None:
    return None


@dataclass(slots=True)
class RunScope:
    """What surrounds a run: journal, values to inject into tools by type, and the stop signal.

    `checkpoint` is called before each model and tool call and raises a `RunSignal` to stop the run;
    `is_cancelled` is what tools may poll; `deadline` is a `time.monotonic()` value; `payloads` says how much
    of a result is taken in.
    `is_allowed` says of a tool whether a person has agreed to its calls beforehand: they ask nobody.
    `shared` is what a run inside a call shares with others of the limits of the turn that it is inside of.
    """

    journal: Journal = field(default_factory=NullJournal)
    resources: dict[type, Any] = field(default_factory=dict[type, Any])
    checkpoint: Callable[[], None] = never_stop
    is_cancelled: Callable[[], bool] = lambda: False
    deadline: float | None = None
    payloads: Payloads = field(default_factory=Payloads)
    is_allowed: Callable[[str], bool] = lambda _: False
    shared: Reservations | None = None

"""What a project declares so that missions can wait for it: a condition that is looked at again and again.

Pure: what a watch looks at is the watch's own business.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from agency.execution.declaration import Fault, Rule

LONGEST_WAIT = 366 * 86_400.0
LONGEST_LOOK = 60.0
_NAME = re.compile(r"[-\w]{1,100}", re.ASCII)


@dataclass(frozen=True, slots=True)
class View:
    """What a watch may know of the wait: whose it is, what it is for and since when.

    `iteration` is the one that decided to wait.
    """

    execution_id: str
    iteration: int
    what_for: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Look:
    """What a look has found.

    `payload`, any JSON value, is told to the agent, as data, when the wait is over. `memory`, a JSON object
    of a few kB, is given to the next look; `None` leaves it as it is.
    """

    is_over: bool
    payload: Any = None
    memory: dict[str, Any] | None = None


class BaseWatch(ABC):
    """A condition by whose `NAME` a mission can wait. Put subclasses into the `missions.py` of an app.

    `DESCRIPTION` tells the supervisor what the wait is over by. `INTERVAL` is the seconds between two looks,
    `TIMEOUT` those after which a wait ends unmet, `LOOK_SECONDS` how long a look may take. A look that
    raises or takes longer has failed: it is tried again after the next interval, and after five failures in
    a row the wait ends and the agent is told so. Each look is made by a fresh instance, in any process, and
    may be repeated: keep in `memory` what a later one needs.
    """

    NAME: ClassVar[str]
    DESCRIPTION: ClassVar[str]
    INTERVAL: ClassVar[float] = 30.0
    TIMEOUT: ClassVar[float] = 86_400.0
    LOOK_SECONDS: ClassVar[float] = 20.0

    def begin(self, view: View) -> dict[str, Any]:
        """The memory with which a wait begins, such as how long a file is then."""
        return {}

    @abstractmethod
    def look(self, view: View, memory: dict[str, Any]) -> Look:
        """Whether the wait is over."""

    @classmethod
    def faults(cls) -> Iterable[Fault]:
        """What is wrong with the settings that a subclass has beside the common ones."""
        return ()


def watch_faults(cls: type[BaseWatch]) -> list[Fault]:
    """Everything that keeps the watch from being registered."""
    faults = [fault for rule in _RULES for fault in rule.check(cls)]
    if "look" in getattr(cls, "__abstractmethods__", ()):
        faults.append(Fault("look() is missing", "Write look(self, view, memory) -> Look."))
    return faults or list(cls.faults())


def is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def is_name(value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def is_number(lowest: float, highest: float) -> Any:
    def fits(value: Any) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and lowest <= value <= highest

    return fits


_RULES = (
    Rule("NAME", is_name, 'a name of at most 100 letters, digits, "-" and "_"'),
    Rule("DESCRIPTION", lambda value: is_text(value) and len(value) <= 500, "a text of 1 to 500 characters"),
    Rule("INTERVAL", is_number(1, LONGEST_WAIT), "a number of seconds from 1"),
    Rule("TIMEOUT", is_number(1, LONGEST_WAIT), "a number of seconds from 1 to 366 days"),
    Rule("LOOK_SECONDS", is_number(0.1, LONGEST_LOOK), f"a number of seconds from 0.1 to {LONGEST_LOOK:g}"),
)

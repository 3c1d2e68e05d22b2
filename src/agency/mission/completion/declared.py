"""What a project declares to verify that a mission is complete. Pure: what a check looks at is its own."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from agency.execution.declaration import Fault, Rule
from agency.mission.watches.declared import is_name, is_number, is_text

LONGEST_CHECK = 600.0


@dataclass(frozen=True, slots=True)
class ClaimedCompletion:
    """What a check may know: the mission, the last answer, and what the supervisor says proves the end.

    `state` is a copy of the run's `ExecutionContext.state`, which its tools have filled.
    """

    execution_id: str
    mission: str
    objective: str
    iteration: int
    answer: str
    evidence: str
    state: dict[str, Any]


class BaseCompletionCheck(ABC):
    """A test that a completion must pass, by whose `NAME` missions ask for it. They go into `missions.py`.

    `SECONDS` is how long it may take. One that raises or takes longer has not passed. It may be made more
    than once for one claim, so let it only look.
    """

    NAME: ClassVar[str]
    DESCRIPTION: ClassVar[str]
    SECONDS: ClassVar[float] = 60.0

    @abstractmethod
    def check(self, claimed: ClaimedCompletion) -> str | None:
        """`None` if the mission is complete; else what is missing, as the agent's next instruction."""


def check_faults(cls: type[BaseCompletionCheck]) -> list[Fault]:
    """Everything that keeps the check from being registered."""
    faults = [fault for rule in _RULES for fault in rule.check(cls)]
    if "check" in getattr(cls, "__abstractmethods__", ()):
        faults.append(Fault("check() is missing", "Write check(self, claimed) -> str | None."))
    return faults


_RULES = (
    Rule("NAME", is_name, 'a name of at most 100 letters, digits, "-" and "_"'),
    Rule("DESCRIPTION", lambda value: is_text(value) and len(value) <= 500, "a text of 1 to 500 characters"),
    Rule("SECONDS", is_number(0.1, LONGEST_CHECK), f"a number of seconds from 0.1 to {LONGEST_CHECK:g}"),
)

"""The placeholders of a `loop_prompt`: filled in from a fixed list, in one pass.

Nothing in them is looked up, indexed or called, and what is put in is not read again.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

PLACEHOLDERS = ("iteration", "max_iterations", "remaining_iterations", "mission_name", "last_summary")
_PLACEHOLDER = re.compile(r"\{(" + "|".join(PLACEHOLDERS) + r")\}")


@dataclass(frozen=True, slots=True)
class Counters:
    """Where a loop stands: `iteration` is the one being judged, from 1."""

    iteration: int
    max_iterations: int

    @property
    def remaining(self) -> int:
        return max(self.max_iterations - self.iteration, 0)


def fill(template: str, counters: Counters, mission_name: str, last_summary: str) -> str:
    """The `loop_prompt` with its placeholders filled in; every other brace stays what it is: text."""
    values: Mapping[str, str] = {
        "iteration": str(counters.iteration),
        "max_iterations": str(counters.max_iterations),
        "remaining_iterations": str(counters.remaining),
        "mission_name": mission_name,
        "last_summary": last_summary,
    }
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template)

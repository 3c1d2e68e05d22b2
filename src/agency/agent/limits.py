"""Caps on what one turn of an agent may use. Reaching one ends the turn with the status `limit`."""

import math
from dataclasses import dataclass
from typing import Any

from agency.agent.history import History
from agency.errors import ConfigurationError

COUNTS = ("max_model_calls", "max_tool_calls", "max_identical_calls", "max_tokens")
NAMES = (*COUNTS, "max_cost", "max_seconds")


@dataclass(frozen=True, slots=True)
class Limits:
    """Counts for one turn, `None` for no cap. `max_cost` is in US dollars, `max_seconds` is wall time.

    The name of the field that was reached is the result's `stop_reason`. A model whose price is not known
    costs nothing here: cap its tokens.
    """

    max_model_calls: int | None = None
    max_tool_calls: int | None = None
    max_identical_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        for name in NAMES:
            value = getattr(self, name)
            if value is not None and not _is_cap(value, name in COUNTS):
                wanted = "a whole number" if name in COUNTS else "a number"
                raise ConfigurationError(f"{name} is {value!r}; give {wanted} from 0 or None for no cap")

    def reached(self, history: History) -> str | None:
        """The cap that forbids another model call, or `None`."""
        spent = (
            ("max_model_calls", self.max_model_calls, history.model_calls),
            ("max_tokens", self.max_tokens, history.total_tokens),
            ("max_cost", self.max_cost, history.cost or 0.0),
            ("max_seconds", self.max_seconds, history.seconds),
        )
        return next((name for name, cap, used in spent if cap is not None and used >= cap), None)

    def refuses_call(self, history: History, ahead: int, same: int) -> str | None:
        """The cap that forbids a tool call after `ahead` others, the `same`-th with these arguments."""
        if self.max_tool_calls is not None and history.tool_calls + ahead >= self.max_tool_calls:
            return "max_tool_calls"
        if self.max_identical_calls is not None and same > self.max_identical_calls:
            return "max_identical_calls"
        return None


def _is_cap(value: Any, whole: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        return False
    return value >= 0 and math.isfinite(value)

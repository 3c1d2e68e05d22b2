"""What an execution of a mission may spend in all, its supervisor's calls too, and the question when it has.

Pure: what was spent is passed in. Reaching a budget is never an end by itself: a person raises it or stops.
One in money that no price leads to would never be reached, so it asks for a cap on tokens at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agency.agent.events import ToolCall, Usage
from agency.agent.limits import Limits
from agency.enums import HumanRequestKind
from agency.human.asking import Ask, Item

BUDGET_CALL = "budget"
"""The id of the one item of a question about a budget."""
MOST: dict[str, tuple[str, float]] = {"tokens": ("integer", 10**12 - 1), "cost": ("number", 10**9)}
"""What a budget may cap, the type of the cap, and the highest one that may be given."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The caps of an execution (`tokens`, `cost` in US dollars), and what its committed iterations spent.

    `unpriced` are the models that it asks and whose price is not known.
    """

    caps: Mapping[str, float]
    before: Usage
    unpriced: Sequence[str] = ()

    @classmethod
    def of(cls, limits: Mapping[str, Any], before: Usage, unpriced: Sequence[str] = ()) -> "Budget":
        return cls({name: limits[name] for name in MOST if limits.get(name) is not None}, before, unpriced)

    def within(self, own: Limits | None) -> Limits | None:
        """The agent's limits, and none of them higher than what is left for this turn."""
        if not self.caps:
            return own
        left = self._left()
        given = own or Limits()
        tokens, cost = left.get("tokens"), left.get("cost")
        return replace(
            given,
            max_tokens=_lowest(given.max_tokens, None if tokens is None else int(tokens)),
            max_cost=_lowest(given.max_cost, cost),
        )

    def ask(self, now: Usage) -> Ask | None:
        """What to ask a person once this iteration has spent `now`; `None` while there is something left.

        It compares as a turn's limits do, so that a turn that a cap has ended always asks.
        """
        left, used = self._left(), _counted(now)
        reached = [name for name in self.caps if used[name] >= left[name]]
        if not reached:
            return self._ask_for_tokens(now) if self.unpriced else None
        spent = _counted(self.before + now)
        asked = {
            "spent": {name: spent[name] for name in reached},
            "limits": {name: self.caps[name] for name in reached},
        }
        said = " and ".join(_said(name, spent[name], self.caps[name]) for name in reached)
        message = f"The mission has spent {said}. Raise the limit so that it goes on, or stop it."
        return _ask(message, asked, _schema(reached, spent))

    def _ask_for_tokens(self, now: Usage) -> Ask | None:
        """What to ask where money is the only cap, and some of it would never be counted."""
        if "cost" not in self.caps or "tokens" in self.caps:
            return None
        spent = {"tokens": (self.before + now).total_tokens}
        asked = {"spent": spent, "limits": {"cost": self.caps["cost"]}, "unpriced": [*self.unpriced]}
        message = (
            f"The mission may spend ${self.caps['cost']:.4f}, but the price of {' and '.join(self.unpriced)} "
            "is not known, so that would never be reached. Cap its tokens so that it goes on, or stop it."
        )
        return _ask(message, asked, _schema(["tokens"], spent))

    def _left(self) -> dict[str, float]:
        used = _counted(self.before)
        return {name: max(cap - used[name], 0) for name, cap in self.caps.items()}


def _ask(message: str, asked: dict[str, Any], schema: dict[str, Any]) -> Ask:
    call = ToolCall(tool_call_id=BUDGET_CALL, name="", arguments=asked)
    return Ask(HumanRequestKind.BUDGET, message, [Item(HumanRequestKind.BUDGET, call, schema)])


def _counted(usage: Usage) -> dict[str, float]:
    return {"tokens": usage.total_tokens, "cost": usage.cost or 0.0}


def _lowest(own: Any, left: Any) -> Any:
    given = [value for value in (own, left) if value is not None]
    return min(given) if given else None


def _schema(reached: list[str], spent: Mapping[str, float]) -> dict[str, Any]:
    """New caps, each above what is spent already."""
    caps = {
        name: {"type": MOST[name][0], "exclusiveMinimum": spent[name], "maximum": MOST[name][1]}
        for name in reached
    }
    return {"type": "object", "properties": caps, "required": reached, "additionalProperties": False}


def _said(name: str, spent: float, cap: float) -> str:
    return f"${spent:.4f} of its ${cap:.4f}" if name == "cost" else f"{spent:,} of its {cap:,} tokens"

"""Decides whose turn it is: a pure rule over lanes, and the memory of whom this process served last.

A lane is what is due of one owner, agent and provider. Who has the least running goes first, then who
was served longest ago, then who has waited longest. A lane at its limit or behind a closed gate has no turn.
"""

import os
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agency.runtime.conf import RuntimeSettings

MEMORY = 256
"""How many owners and lanes are remembered as served; who was served before them counts as never served."""


@dataclass(frozen=True, slots=True)
class Lane:
    """`owner` and `agent` are as the database gives them."""

    owner: Any
    agent: Any
    provider: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A lane with due work, the oldest for `seconds`; `agent_limit` is what its agent allows at once."""

    lane: Lane
    seconds: float
    agent_limit: int | None = None
    is_shut: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """How many claims there may be at once, `None` for any number."""

    owner: int | None = None
    agent: int | None = None
    provider: int | None = None

    @classmethod
    def of(cls, waiting: Waiting, settings: RuntimeSettings) -> "Limits":
        by_provider = settings.CONCURRENCY_PER_PROVIDER
        if isinstance(by_provider, Mapping):
            by_provider = by_provider.get(waiting.lane.provider)
        own = waiting.agent_limit
        return cls(
            settings.CONCURRENCY_PER_OWNER,
            settings.CONCURRENCY_PER_AGENT if own is None else own,
            by_provider,
        )


class Running:
    """How many claims are out: of a lane, of an owner, of an agent, of a provider."""

    def __init__(self, lanes: Mapping[Lane, int]) -> None:
        self.lane = Counter(dict(lanes))
        self.owner, self.agent, self.provider = Counter[Any](), Counter[Any](), Counter[str]()
        for lane, count in lanes.items():
            self.owner[lane.owner] += count
            self.agent[lane.agent] += count
            self.provider[lane.provider] += count

    def has_room(self, lane: Lane, limits: Limits) -> bool:
        counted = (
            (self.owner[lane.owner], limits.owner),
            (self.agent[lane.agent], limits.agent),
            (self.provider[lane.provider], limits.provider),
        )
        return all(limit is None or count < limit for count, limit in counted)


class Served:
    """Remembers in which order owners and lanes were last served. For many threads."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._turn = 0
        self._turns: dict[Any, int] = {}

    def note(self, lane: Lane) -> None:
        with self._guard:
            self._turn += 1
            for served in (("owner", lane.owner), lane):
                self._turns.pop(served, None)
                self._turns[served] = self._turn
            while len(self._turns) > MEMORY:
                del self._turns[next(iter(self._turns))]

    def last(self, lane: Lane) -> tuple[int, int]:
        """When the lane's owner and the lane itself were last served; 0 for never."""
        with self._guard:
            return self._turns.get(("owner", lane.owner), 0), self._turns.get(lane, 0)


def in_turn(
    waiting: Iterable[Waiting], running: Running, served: Served, settings: RuntimeSettings
) -> list[Waiting]:
    """The lanes that may be served now, whose turn it is first."""

    def rank(one: Waiting) -> tuple[Any, ...]:
        owner_last, lane_last = served.last(one.lane)
        return running.owner[one.lane.owner], owner_last, running.lane[one.lane], lane_last, -one.seconds

    fit = [one for one in waiting if not one.is_shut and running.has_room(one.lane, Limits.of(one, settings))]
    return sorted(fit, key=rank)


_served: dict[int, Served] = {}


def served() -> Served:
    """This process's memory."""
    return _served.setdefault(os.getpid(), Served())

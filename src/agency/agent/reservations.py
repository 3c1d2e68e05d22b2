"""What the runs inside the calls of one turn may still use of its limits, together and at the same time.

Limits compare with what is on record, and what is under way is not: so a model call reserves what it may
cost before it begins, and waits for those under way where that is more than is left beside them.
"""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from agency.agent.history import History
from agency.agent.limits import Limits

POLL = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Reserved:
    """What one model call may cost, as far as that can be told before."""

    tokens: int
    cost: float


class Reservations:
    """Of the runs inside the calls of the turn whose `limits` and `history` these are.

    `around` are those of the turn that this one's run is itself inside of. Used by many threads. A call
    that nothing is under way beside is only compared with what is on record, so that it is never held up
    by a guess.
    """

    def __init__(self, limits: Limits, history: History, around: "Reservations | None" = None) -> None:
        self._limits = limits
        self._history = history
        self._around = around
        self._changed = threading.Condition()
        self._models: list[Reserved] = []
        self._tools = 0

    @contextmanager
    def model_call(self, size: int, checkpoint: Callable[[], None]) -> Generator[str | None]:
        """Hold back what a model call with about `size` tokens to read may cost, until it is on record.

        Gives the cap that forbids the call, or `None`. `checkpoint` is called while it waits.
        """
        mine = self._wait(size, checkpoint)
        if not isinstance(mine, Reserved):
            yield mine
            return
        try:
            if self._around is None:
                yield None
            else:
                with self._around.model_call(size, checkpoint) as reached:
                    yield reached
        finally:
            with self._changed:
                self._models.remove(mine)
                self._changed.notify_all()

    def take_tool_call(self) -> str | None:
        """Count a tool call as begun, until `end_tool_calls`; or the cap that forbids it."""
        with self._changed:
            # The calls that the turn itself is at count when they end, as do those inside them.
            ahead = len(self._history.open_calls) + self._tools
            refused = self._limits.refuses_call(self._history, ahead, 0)
            refused = refused or (self._around and self._around.take_tool_call())
            self._tools += refused is None
        return refused

    def end_tool_calls(self, count: int) -> None:
        """So many that were taken are on record, or will not be made."""
        with self._changed:
            self._tools -= count
        if self._around is not None:
            self._around.end_tool_calls(count)

    def _wait(self, size: int, checkpoint: Callable[[], None]) -> Reserved | str:
        while True:
            with self._changed:
                reached = self._limits.reached(self._history)
                if reached is not None:
                    return reached
                mine = self._expected(size)
                if self._fits(mine):
                    self._models.append(mine)
                    return mine
                self._changed.wait(POLL)
            checkpoint()

    def _expected(self, size: int) -> Reserved:
        """What it has to read, or as much as the turn's largest call so far, whichever is more."""
        history = self._history
        tokens = max(size, history.largest_call)
        price = (history.cost or 0.0) / history.total_tokens if history.total_tokens else 0.0
        return Reserved(tokens, max(tokens * price, history.dearest_call))

    def _fits(self, mine: Reserved) -> bool:
        if not self._models:
            return True
        limits, history, held = self._limits, self._history, [*self._models, mine]
        wanted = (
            (limits.max_model_calls, history.model_calls + len(held)),
            (limits.max_tokens, history.total_tokens + sum(one.tokens for one in held)),
            (limits.max_cost, (history.cost or 0.0) + sum(one.cost for one in held)),
        )
        return all(cap is None or used <= cap for cap, used in wanted)

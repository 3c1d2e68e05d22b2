"""Request builders: which part of a context the model sees. They select; they never change the record.

A builder is made of strategies, each of which leaves out more of a history's oldest part: only whole
turns, or the bulk of old results, and a block at a time, so that the beginning of a request stays the
same for many calls and a provider's cache stays warm.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

from agency.agent.context import ExecutionContext
from agency.agent.history import History, history_of
from agency.agent.llm import LlmRequest
from agency.agent.selection import EVERYTHING, SHORT, Plan, View, in_blocks, shortened
from agency.errors import ConfigurationError

if TYPE_CHECKING:
    from agency.agent.agent import Agent
    from agency.agent.record import Record


class RequestBuilder(Protocol):
    """Fills `request.contents` from the context; instructions, tools and output shape are already set.

    Optional: `prepare(agent, record)`, called before each request, also one whose answer is on record, and
    `shrink(context, request)`, which gives a smaller request (or `None`) when the model found one too large.
    """

    def build(self, context: ExecutionContext, request: LlmRequest) -> LlmRequest: ...


class SelectingBuilder:
    """Leaves out what its parts leave out: `SelectingBuilder(WindowBuilder(20), TrimmingBuilder(10))`.

    One with a strategy of its own overrides `narrow`, and `prepare` where that needs something on record.
    """

    def __init__(self, *parts: "SelectingBuilder") -> None:
        self.parts: Sequence[SelectingBuilder] = parts

    def narrow(self, plan: Plan, history: History) -> Plan:
        """`plan` with more left out, from the history's counts alone: so it is the same after a reload."""
        for part in self.parts:
            plan = part.narrow(plan, history)
        return plan

    def prepare(self, agent: "Agent", record: "Record") -> None:
        """Put on record what `narrow` builds on, such as a summary."""
        for part in self.parts:
            part.prepare(agent, record)

    def build(self, context: ExecutionContext, request: LlmRequest) -> LlmRequest:
        history = history_of(context)
        view = self.view(history)
        request.contents = [*view.items]
        request.selection = view.as_json(history)
        return request

    def view(self, history: History) -> View:
        """What is shown of `history` at this point; kept, so that only what is new is looked at."""
        return self._view(history, self._plan(history))

    def shrink(self, context: ExecutionContext, request: LlmRequest) -> LlmRequest | None:
        """A request of half the size, or as near as it gets; `None` if there is nothing to leave out."""
        history = history_of(context)
        plan = self._plan(history)
        size = self._view(history, plan).size
        smaller = self._view(history, _halved(history, plan, size // 2))
        if smaller.size >= size:
            return None
        selection = {**smaller.as_json(history), "shrunk": True}
        return replace(request, contents=list(smaller.items), selection=selection)

    def _plan(self, history: History) -> Plan:
        """What is left out at this point; what was once too large for the model stays out."""
        plan = self.narrow(EVERYTHING, history)
        shrunk = history.shrunk
        if shrunk is None:
            return plan
        steps = min(shrunk.get("steps_trimmed", 0), _old_steps(history))
        turns = min(shrunk.get("turns_out", 0), history.turn - 1)
        return plan.without(turns).trimmed(steps, shrunk.get("characters", SHORT))

    def _view(self, history: History, plan: Plan) -> View:
        view: View | None = history.views.get(self)
        if view is None or not view.follow(history, plan):
            view = history.views[self] = View(history, plan)
            view.follow(history, plan)
        return view


class EverythingBuilder(SelectingBuilder):
    """The whole history, in order, unless the model could not read it."""


class WindowBuilder(SelectingBuilder):
    """The newest turns: at least `turns` of them, at most `block - 1` more; and always the first message."""

    def __init__(self, turns: int = 20, block: int = 10) -> None:
        super().__init__()
        self.turns = positive("turns", turns)
        self.block = positive("block", block)

    def narrow(self, plan: Plan, history: History) -> Plan:
        return plan.without(in_blocks(history.turn, self.turns, self.block))


class TrimmingBuilder(SelectingBuilder):
    """Cuts results of old steps to their first `characters`.

    The newest `steps` that called tools, and at most `block - 1` more, keep their results whole.
    """

    def __init__(self, steps: int = 10, block: int = 20, characters: int = SHORT) -> None:
        super().__init__()
        self.steps = positive("steps", steps)
        self.block = positive("block", block)
        self.characters = positive("characters", characters)

    def narrow(self, plan: Plan, history: History) -> Plan:
        trimmed = in_blocks(len(history.step_starts), self.steps, self.block)
        return plan.trimmed(trimmed, self.characters)


def positive(name: str, value: int) -> int:
    if value < 1:
        raise ConfigurationError(f"{name} is {value}; give 1 or more")
    return value


def _old_steps(history: History) -> int:
    return max(0, len(history.step_starts) - 1)


def _halved(history: History, plan: Plan, target: int) -> Plan:
    """Old results are cut first; where that is not enough, the oldest turns go, but never the newest."""
    trimmed = plan.trimmed(_old_steps(history))
    view = View(history, trimmed)
    view.follow(history, trimmed)
    if view.size <= target:
        return trimmed
    turns = range(trimmed.turns_out, history.turn - 1)
    saved = accumulate(_turn_size(history, turn, trimmed) for turn in turns)
    enough = (turn + 1 for turn, so_far in zip(turns, saved, strict=True) if view.size - so_far <= target)
    return trimmed.without(next(enough, history.turn - 1))


def _turn_size(history: History, turn: int, plan: Plan) -> int:
    start, end = history.turn_starts[turn], history.turn_starts[turn + 1]
    items = (
        shortened(item, plan.characters) for item in history.contents[max(start, history.task_end) : end]
    )
    return sum(len(item.__pydantic_serializer__.to_json(item)) for item in items)

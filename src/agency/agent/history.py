"""An index over a context's events that grows with them: request contents, open calls, counts of the turn.

Everything here follows from the events, so a context that was stored and loaded again goes on as before,
and each event is read once, however long the history is.
"""

import time
import weakref
from collections import Counter
from typing import Any

from agency.agent.context import ExecutionContext
from agency.agent.events import ContentItem, Event, ToolCall, ToolResult, Usage
from agency.agent.text import canonical

USER = "user"


class History:
    """What a request builder and the loop need to know of a context, without reading it again."""

    def __init__(self) -> None:
        self._clear()

    def sync(self, context: ExecutionContext) -> "History":
        """Read the events that were added since the last call."""
        events = context.events
        count, seen = len(events), self._seen
        if seen and (count < seen or events[seen - 1] is not self._newest):
            self._clear()
        elif count == seen:
            return self
        for event in events[self._seen :]:
            self._read(event)
            self._newest = event
        self._seen = count
        return self

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def seconds(self) -> float:
        """Wall time since this process first saw the turn's user event."""
        return time.monotonic() - self._turn_seen_at

    @property
    def usage(self) -> Usage:
        """What the turn has cost so far."""
        return Usage(
            model_calls=self.model_calls,
            tool_calls=self.tool_calls,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cached_tokens=self.cached_tokens,
            cost=self.cost,
        )

    def times_called(self, call: ToolCall) -> int:
        """How often this turn has asked for the same tool with the same arguments, this call included."""
        for seen in self._turn_calls[self._counted :]:
            self._same[_identity(seen)] += 1
        self._counted = len(self._turn_calls)
        return self._same[_identity(call)]

    @property
    def called(self) -> set[str]:
        """The names of the tools that this turn has asked for."""
        return {call.name for call in self._turn_calls}

    def _clear(self) -> None:
        self.contents: list[ContentItem] = []
        self.turn = 0
        self.turn_starts: list[int] = []
        self.step_starts: list[int] = []
        """Where each response with calls begins in `contents`; `turn_starts` where each user event does."""
        self.task_end = 0
        """Where the first user event ends in `contents`."""
        self.revision = 0
        """Counts insertions before the end of `contents`: what was read of them holds no longer."""
        self.summary: tuple[int, str] | None = None
        """How many of the oldest turns the newest summary covers, and its text."""
        self.shrunk: dict[str, Any] | None = None
        """The selection that the model could read after it had found a request too large."""
        self.views: dict[Any, Any] = {}
        """What request builders keep of this history from one request to the next, by builder."""
        self.kept: dict[Any, Any] = {}
        """What model clients keep of it, see `LlmRequest.kept`."""
        self.turn_ends: list[str] = []
        """The ids of the last events before the first turn (empty if none), of the first turn, and so on."""
        self.open_calls: dict[str, ToolCall] = {}
        self.call_ids: set[str] = set()
        self.masked: set[str] = set()
        """The calls whose arguments held a secret that the record does not keep."""
        self._seen = 0
        self._newest: Event | None = None
        self._answer_at = 0
        self.ordinals: dict[str, int] = {}
        self._start_turn(0)

    def _start_turn(self, step: int) -> None:
        self.turn_step = step
        self.model_calls = self.tool_calls = 0
        self.input_tokens = self.output_tokens = self.cached_tokens = 0
        self.cost: float | None = None
        self.largest_call, self.dearest_call = 0, 0.0
        self.step_results: list[ToolResult] = []
        self.result_events = 0
        self._turn_seen_at = time.monotonic()
        self._turn_calls: list[ToolCall] = []
        self._counted = 0
        self._same: Counter[tuple[str, str]] = Counter()

    def _read(self, event: Event) -> None:
        start = len(self.contents)
        if event.author == USER:
            self._next_turn(event, start)
        if event.usage is not None:
            self._count(event.usage)
        if event.call is not None and self._is_aside(event, event.call):
            return
        calls: list[ToolCall] = []
        answered = False
        for item in event.content:
            if item.type == "tool_result":
                answered = True
                self._answer(item)
            elif item.type == "tool_call":
                calls.append(item)
                self.contents.append(item)
            elif not (item.type == "message" and not item.content):
                self.contents.append(item)
        self.result_events += answered
        if self.turn == 1 and event.author == USER:
            self.task_end = len(self.contents)
        if calls:
            self.step_starts.append(start)
            self._open(calls)

    def _next_turn(self, event: Event, start: int) -> None:
        self.turn_ends.append(self._newest.id if self._newest is not None else "")
        self.turn += 1
        self.turn_starts.append(start)
        self._start_turn(event.step)

    def _is_aside(self, event: Event, call: dict[str, Any]) -> bool:
        """Whether the event is no part of what was said to the agent or by it: see `Event.aside`."""
        if "within" in call or "beside" in call:
            return True
        if "masked" in call:
            self.masked.update(call["masked"])
        sent = call.get("request")
        if sent is not None and sent.get("shrunk"):
            self.shrunk = sent
        if "summary_of" not in call:
            return False
        last = call["summary_of"][1]
        if event.error is None and last in self.turn_ends:
            self.summary = (self.turn_ends.index(last), event.text)
        return True

    def _open(self, calls: list[ToolCall]) -> None:
        self._answer_at = len(self.contents)
        self.ordinals = {call.tool_call_id: place for place, call in enumerate(calls)}
        self._turn_calls.extend(calls)
        self.call_ids.update(self.ordinals)
        for call in calls:
            self.open_calls[call.tool_call_id] = call
        self.step_results = []
        self.result_events = 0

    def _answer(self, result: ToolResult) -> None:
        """Place a result behind its calls; an orphan and a second result stay in the record only."""
        call = self.open_calls.pop(result.tool_call_id, None)
        if call is None:
            return
        newest = result.tool_call_id in self.ordinals
        place = self._answer_at if newest else self._behind(call)
        self._answer_at += 1
        if newest:
            self.step_results.append(result)
        self._insert(place, result)

    def _behind(self, call: ToolCall) -> int:
        place = next(i for i in range(len(self.contents) - 1, -1, -1) if self.contents[i] is call) + 1
        while place < len(self.contents) and isinstance(self.contents[place], ToolCall | ToolResult):
            place += 1
        return place

    def _insert(self, place: int, item: ContentItem) -> None:
        if place < len(self.contents):
            self.turn_starts = [start + (start >= place) for start in self.turn_starts]
            self.step_starts = [start + (start >= place) for start in self.step_starts]
            self.task_end += self.task_end > place
            self.revision += 1
        self.contents.insert(place, item)

    def _count(self, usage: Usage) -> None:
        self.model_calls += usage.model_calls
        self.tool_calls += usage.tool_calls
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.cached_tokens += usage.cached_tokens
        self.largest_call = max(self.largest_call, usage.total_tokens)
        if usage.cost is not None:
            self.cost = (self.cost or 0.0) + usage.cost
            self.dearest_call = max(self.dearest_call, usage.cost)


def history_of(context: ExecutionContext) -> History:
    """The index of this context, up to date. It lives as long as the context does."""
    key = id(context)
    entry = _histories.get(key)
    if entry is None or entry[0]() is not context:
        entry = (weakref.ref(context, lambda _: _histories.pop(key, None)), History())
        _histories[key] = entry
    return entry[1].sync(context)


_histories: dict[int, tuple[weakref.ref[ExecutionContext], History]] = {}


def _identity(call: ToolCall) -> tuple[str, str]:
    arguments: Any = call.invalid if call.invalid is not None else call.arguments
    return call.name, canonical(arguments)

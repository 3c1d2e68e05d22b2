"""An index over a context's events that grows with them: request contents, open calls, counts of the turn.

Everything here follows from the events, so a context that was stored and loaded again goes on as before,
and each event is read once, however long the history is.
"""

import hashlib
import time
import weakref
from collections import Counter
from typing import Any

from agency.agent.context import ExecutionContext
from agency.agent.events import ContentItem, Event, Message, ToolCall, ToolResult, Usage
from agency.agent.text import canonical

USER = "user"


class History:
    """What a request builder and the loop need to know of a context, without reading it again."""

    def __init__(self) -> None:
        self._clear()

    def sync(self, context: ExecutionContext) -> "History":
        """Read the events that were added since the last call."""
        events = context.events
        if self._seen and (len(events) < self._seen or events[self._seen - 1] is not self._newest):
            self._clear()
        for event in events[self._seen :]:
            self._read(event)
        if events:
            self._seen, self._newest = len(events), events[-1]
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

    def digest(self) -> str:
        """SHA-256 over the JSON of all contents: which history a model was shown."""
        for item in self.contents[self._hashed :]:
            self._hash.update(item.__pydantic_serializer__.to_json(item))
        self._hashed = len(self.contents)
        return self._hash.hexdigest()

    def times_called(self, call: ToolCall) -> int:
        """How often this turn has asked for the same tool with the same arguments, this call included."""
        for seen in self._turn_calls[self._counted :]:
            self._same[_identity(seen)] += 1
        self._counted = len(self._turn_calls)
        return self._same[_identity(call)]

    def _clear(self) -> None:
        self.contents: list[ContentItem] = []
        self.turn = 0
        self.turn_starts: list[int] = []
        self.open_calls: dict[str, ToolCall] = {}
        self.call_ids: set[str] = set()
        self._seen = 0
        self._newest: Event | None = None
        self._hash = hashlib.sha256()
        self._hashed = 0
        self._answer_at = 0
        self.ordinals: dict[str, int] = {}
        self._start_turn(0)

    def _start_turn(self, step: int) -> None:
        self.turn_step = step
        self.model_calls = self.tool_calls = 0
        self.input_tokens = self.output_tokens = self.cached_tokens = 0
        self.cost: float | None = None
        self.step_results: list[ToolResult] = []
        self.result_events = 0
        self._turn_seen_at = time.monotonic()
        self._turn_calls: list[ToolCall] = []
        self._counted = 0
        self._same: Counter[tuple[str, str]] = Counter()

    def _read(self, event: Event) -> None:
        if event.author == USER:
            self.turn += 1
            self.turn_starts.append(len(self.contents))
            self._start_turn(event.step)
        if event.usage is not None:
            self._count(event.usage)
        calls: list[ToolCall] = []
        answered = False
        for item in event.content:
            if isinstance(item, ToolResult):
                answered = True
                self._answer(item)
            elif isinstance(item, ToolCall):
                calls.append(item)
                self.contents.append(item)
            elif not (isinstance(item, Message) and not item.content):
                self.contents.append(item)
        self.result_events += answered
        if calls:
            self._open(calls)

    def _open(self, calls: list[ToolCall]) -> None:
        self._answer_at = len(self.contents)
        self.ordinals = {call.tool_call_id: place for place, call in enumerate(calls)}
        self._turn_calls.extend(calls)
        self.call_ids.update(self.ordinals)
        self.open_calls.update((call.tool_call_id, call) for call in calls)
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
            self._hash, self._hashed = hashlib.sha256(), 0
        self.contents.insert(place, item)

    def _count(self, usage: Usage) -> None:
        self.model_calls += usage.model_calls
        self.tool_calls += usage.tool_calls
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.cached_tokens += usage.cached_tokens
        if usage.cost is not None:
            self.cost = (self.cost or 0.0) + usage.cost


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

"""The record of a turn: every event through the journal first, then into the context and its index."""

from collections.abc import Callable, Sequence
from typing import Any

from agency.agent.context import ExecutionContext
from agency.agent.events import ContentItem, Event, EventError, Usage, recorded
from agency.agent.history import History, history_of
from agency.agent.hooks import Hooks
from agency.agent.journal import Journal


class Record:
    """Writes and replays the events of one context in the name of one agent."""

    def __init__(self, context: ExecutionContext, author: str, journal: Journal, hooks: Hooks) -> None:
        self.context = context
        self.author = author
        self.journal = journal
        self.history: History = history_of(context)
        self._on_event = hooks.on_event

    def key(self, tail: str) -> str:
        """A journal key of the current step."""
        return f"{self.history.turn}:{self.context.current_step}:{tail}"

    def event(
        self,
        content: Sequence[ContentItem],
        author: str | None = None,
        usage: Usage | None = None,
        error: EventError | None = None,
        call: dict[str, Any] | None = None,
    ) -> Event:
        """A new event of the current step, not yet written."""
        context = self.context
        return recorded(
            context.execution_id,
            author or self.author,
            [*content],
            context.current_step,
            usage,
            error,
            call,
        )

    def replay(self, key: str) -> Event | None:
        """The event that was recorded under `key`, now in the context too, or `None`."""
        recorded = self.journal.recall(key)
        if recorded is None or not recorded.events:
            return None
        self.take(recorded.events)
        return recorded.events[-1]

    def write(self, key: str, event: Event, settles: Sequence[str] = ()) -> Event:
        self.put(key, None, [event], settles)
        return event

    def put(self, key: str, result: Any, events: Sequence[Event], settles: Sequence[str] = ()) -> None:
        """Journal a result and new events, and add the events to the context."""
        self.journal.record(key, result, events, settles)
        self.take(events)
        if self._on_event is not None:
            for event in events:
                self._on_event(event)

    def take(self, events: Sequence[Event]) -> None:
        """Add events that are journaled already to the context."""
        for event in events:
            self.context.add_event(event)
        self.history.sync(self.context)

    def settle(self, key: str, make: Callable[[], Event]) -> Event:
        """The event recorded under `key`, or else the one that `make` gives, written now."""
        return self.replay(key) or self.write(key, make())

"""A journal in memory, for tests of what a run writes and replays."""

from collections.abc import Sequence
from typing import Any

from agency.agent import Event, Recorded
from agency.agent.testing import ScriptedLlm
from agency.enums import Effect


class MemoryJournal:
    """Keeps everything in order, as a runtime's journal would in rows."""

    def __init__(self, scope: str = "exec:1") -> None:
        self.scope = scope
        self.entries: dict[str, Recorded] = {}
        self.log: list[tuple[str, str]] = []
        self.intents: dict[str, tuple[Effect, str]] = {}

    def recall(self, key: str) -> Recorded | None:
        return self.entries.get(key)

    def intend(self, key: str, effect: Effect, idempotency_key: str) -> None:
        self.log.append(("intend", key))
        self.intents[key] = (effect, idempotency_key)

    def record(self, key: str, result: Any, events: Sequence[Event]) -> None:
        assert key not in self.entries, f"{key} was recorded twice"
        self.log.append(("record", key))
        self.entries[key] = Recorded(result, list(events))

    def forget_after(self, count: int) -> None:
        """Keep the first `count` records only, as if the process had died there."""
        for key in list(self.entries)[count:]:
            del self.entries[key]


def greeter() -> ScriptedLlm:
    """A model to be found by name."""
    return ScriptedLlm("hello", loop=True)

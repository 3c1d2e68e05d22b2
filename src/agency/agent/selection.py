"""What a request shows of a history: the plan, in counts from the beginning, and its rendering.

A view is kept from request to request. It renders only what is new, so that a request costs the same at
any length of history, and tells the digest and size of what it shows without reading it again.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from agency.agent.events import ContentItem, Message, ToolResult
from agency.agent.history import History
from agency.agent.text import as_text

SHORT = 200
NOTE_ROOM = 100


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of the oldest part is left out. Values, so that plans can be compared, merged and kept.

    `turns_out`: turns that are not shown, but for the task message. `summarised`: how many of these a
    summary stands for. `steps_trimmed`: steps whose results are cut to `characters`.
    """

    turns_out: int = 0
    summarised: int = 0
    steps_trimmed: int = 0
    characters: int = SHORT

    def without(self, turns: int) -> "Plan":
        """This plan with at least so many turns left out."""
        return replace(self, turns_out=turns) if turns > self.turns_out else self

    def trimmed(self, steps: int, characters: int = SHORT) -> "Plan":
        """This plan with at least so many steps trimmed, and to no more characters."""
        if not steps or (steps <= self.steps_trimmed and characters >= self.characters):
            return self
        if self.steps_trimmed:
            characters = min(characters, self.characters)
        return replace(self, steps_trimmed=max(steps, self.steps_trimmed), characters=characters)

    def as_json(self) -> dict[str, int]:
        """The plan for the record of a call; what leaves nothing out says nothing."""
        told = {"turns_out": self.turns_out, "summarised": self.summarised}
        if self.steps_trimmed:
            told.update(steps_trimmed=self.steps_trimmed, characters=self.characters)
        return {name: count for name, count in told.items() if count}


EVERYTHING = Plan()


def in_blocks(count: int, keep: int, block: int) -> int:
    """How many of the oldest go so that `keep` to `keep + block - 1` of `count` stay.

    The answer grows by a whole block at a time; in between, the beginning of a request stays as it is.
    """
    return max(0, (count - keep) // block * block)


class View:
    """A plan's rendering of one history. `settled` items before a trimming's end never change again."""

    def __init__(self, history: History, plan: Plan) -> None:
        self.items: list[ContentItem] = []
        self.size: int = 0
        """Bytes of the items as JSON."""
        self._plan, self._told = plan, plan.as_json()
        self._revision = history.revision
        self._hash = hashlib.sha256()
        self._read: int = 0
        if plan.turns_out:
            self._add([*history.contents[: history.task_end], _left_out(history, plan)])
            self._read = history.turn_starts[plan.turns_out]
        self._settle()

    def follow(self, history: History, plan: Plan) -> bool:
        """Show what is new in `history`; false where the plan needs a view of its own."""
        if not self._continues(history, plan):
            return False
        boundary = history.step_starts[plan.steps_trimmed] if plan.steps_trimmed else 0
        if boundary > self._settled_read:
            self._unsettle()
            old = history.contents[self._read : boundary]
            self._add(shortened(item, plan.characters) for item in old)
            self._read = boundary
            self._settle()
        if plan is not self._plan:
            self._plan, self._told = plan, plan.as_json()
        if self._read < len(history.contents):
            self._add(history.contents[self._read :])
            self._read = len(history.contents)
        return True

    @property
    def digest(self) -> str:
        """SHA-256 over the JSON of the items: which history a model was shown."""
        return self._hash.hexdigest()

    def as_json(self, history: History) -> dict[str, Any]:
        """What is kept of a request: how much of the history it showed, and which."""
        return {
            "items": len(self.items),
            "of": len(history.contents),
            "digest": self.digest,
            **self._told,
        }

    def _continues(self, history: History, plan: Plan) -> bool:
        if plan is self._plan or plan == self._plan:
            return history.revision == self._revision
        same = replace(self._plan, steps_trimmed=plan.steps_trimmed, characters=plan.characters) == plan
        further = not self._plan.steps_trimmed or (
            plan.characters == self._plan.characters and plan.steps_trimmed > self._plan.steps_trimmed
        )
        return same and further and history.revision == self._revision

    def _add(self, items: Iterable[ContentItem]) -> None:
        for item in items:
            encoded = item.__pydantic_serializer__.to_json(item)
            self._hash.update(encoded)
            self.size += len(encoded)
            self.items.append(item)

    def _settle(self) -> None:
        self._settled = (len(self.items), self.size, self._hash.copy())
        self._settled_read = self._read

    def _unsettle(self) -> None:
        count, self.size, kept = self._settled
        del self.items[count:]
        self._hash = kept.copy()
        self._read = self._settled_read


def shortened(item: ContentItem, characters: int) -> ContentItem:
    """A result cut to its first characters, with a note; anything else, and a short one, as it is."""
    if not isinstance(item, ToolResult):
        return item
    text = as_text(item.content)
    if len(text) <= characters + NOTE_ROOM:
        return item
    note = f"[the rest of these {len(text):,} characters is left out to save space]"
    return item.model_copy(update={"content": f"{text[:characters]}\n{note}"})


def _left_out(history: History, plan: Plan) -> Message:
    """Says in the place of the turns that they are missing, and what was in them if that is known."""
    lines: list[str] = []
    first = 1
    if plan.summarised and history.summary is not None:
        lines.append(f"[Summary of {_turns(1, plan.summarised)}, which are not shown]\n{history.summary[1]}")
        first = plan.summarised + 1
    if first <= plan.turns_out:
        lines.append(f"[Not shown: {_turns(first, plan.turns_out)} of this conversation]")
    return Message(role="assistant", content="\n".join(lines))


def _turns(first: int, last: int) -> str:
    task = " (but for the first message)" if first == 1 else ""
    return f"turn {first}{task}" if first == last else f"turns {first} to {last}{task}"

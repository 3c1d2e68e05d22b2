"""A conversation as text for a supervisor: capped in messages and characters, oldest left out first.

The first task message and the newest turn always stay; what is left out is said. Knows no database.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agency.agent.text import cut
from agency.enums import MessageRole

TOOL_LIMIT = 400
_NAMES = {
    MessageRole.USER: "user",
    MessageRole.ASSISTANT: "agent",
    MessageRole.TOOL: "tool",
    MessageRole.SYSTEM: "system",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One message: `by_supervisor` marks an instruction that a supervisor gave."""

    role: MessageRole
    content: str
    iteration: int = 0
    by_supervisor: bool = False


@dataclass(frozen=True, slots=True)
class Caps:
    """How much of a conversation a supervisor reads."""

    messages: int = 200
    characters: int = 24_000


LOCAL_CAPS = Caps(messages=60, characters=6_000)
LOCAL_ORDERS = 1_500
"""Characters that a local model reads of the objective (which it is told twice), of the loop prompt and of
the last summary: with rules, examples, transcript and answer they must fit into a context of 8,192 tokens.
"""


def transcribe(lines: Sequence[Line], caps: Caps) -> str:
    """The transcript, newest at the end, within the caps as far as the task and the newest turn let it."""
    shown = [_shown(line) for line in lines if line.content.strip()]
    kept = [line for line in lines if line.content.strip()]
    if not shown:
        return "(Nothing has been said yet.)"
    first = next((place for place, line in enumerate(kept) if line.role == MessageRole.USER), 0)
    newest = max((place for place, line in enumerate(kept) if line.role == MessageRole.USER), default=0)
    room = caps.characters - (len(shown[first]) if first < newest else 0)
    tail = _newest_turn(shown[newest:], max(room, caps.characters // 2), caps.messages)
    room -= sum(map(len, tail))
    between = _fitting(shown[first + 1 : newest], room, caps.messages - len(tail) - 1)
    left_out = newest - first - 1 - len(between) if first < newest else 0
    note = [f"[… {left_out} earlier messages are left out …]"] if left_out > 0 else []
    opening = [within(shown[first], caps.characters // 4)] if first < newest else []
    return "\n".join([*opening, *note, *between, *tail])


def _shown(line: Line) -> str:
    name = "supervisor" if line.by_supervisor else _NAMES[line.role]
    limit = TOOL_LIMIT if line.role == MessageRole.TOOL else None
    text = line.content if limit is None else cut(line.content, limit)
    said = f"{name}: {indented(text)}"
    return f"[round {line.iteration}] {said}" if line.iteration else said


def indented(text: str) -> str:
    """The text with its later lines indented, so that none can open a message that others seem to say."""
    return "\n  ".join(text.splitlines())


def _fitting(shown: Sequence[str], characters: int, messages: int) -> list[str]:
    """As many of the last ones as fit."""
    kept: list[str] = []
    for text in reversed(shown):
        characters -= len(text) + 1
        if characters < 0 or len(kept) >= messages:
            break
        kept.append(text)
    return kept[::-1]


def _newest_turn(shown: Sequence[str], characters: int, messages: int) -> list[str]:
    """The newest turn: its opening and its end whole, its middle as far as there is room."""
    if sum(map(len, shown)) <= characters and len(shown) <= messages:
        return list(shown)
    opening = within(shown[0], characters // 3)
    if len(shown) == 1:
        return [within(shown[0], characters)]
    end = within(shown[-1], characters // 2)
    middle = _fitting(shown[1:-1], characters - len(opening) - len(end), messages - 2)
    left_out = len(shown) - 2 - len(middle)
    note = [f"[… {left_out} messages of this round are left out …]"] if left_out else []
    return [opening, *note, *middle, end]


def within(text: str, limit: int) -> str:
    """Beginning and end of a long text: the end of an answer tells more than its middle."""
    if len(text) <= limit:
        return text
    half = max(limit // 2 - 20, 20)
    return f"{text[:half]} [… {len(text) - 2 * half:,} characters left out …] {text[-half:]}"


def from_result(messages: Iterable[dict[str, object]]) -> list[Line]:
    """Lines of `execution.result["messages"]`, for threads that have no rows yet."""
    return [
        Line(MessageRole(str(one.get("role", "assistant"))), str(one.get("content", ""))) for one in messages
    ]

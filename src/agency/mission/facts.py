"""What code can tell of a transcript: its newest round, parted into what was asked, said and returned.

Reads what `transcript.transcribe` wrote: a line that opens with a name begins a message, any other goes on
with the one before.
"""

import re
from dataclasses import dataclass

_OPENING = re.compile(r"^(?:\[round \d+\] )?(user|supervisor|agent|tool|system|log): ?")


@dataclass(frozen=True, slots=True)
class Spoken:
    """One message of a transcript."""

    name: str
    text: str
    shown: str


@dataclass(frozen=True, slots=True)
class Round:
    """The newest round: what opened it, what tools returned, the agent's last words, what went wrong."""

    earlier: str
    instruction: str
    results: tuple[str, ...]
    says: str
    log: tuple[str, ...] = ()


def spoken(transcript: str) -> list[Spoken]:
    """The messages of a transcript, in its order."""
    found: list[Spoken] = []
    for line in transcript.splitlines():
        opening = _OPENING.match(line)
        if opening:
            found.append(Spoken(opening[1], line[opening.end() :], line))
        elif found:
            last = found[-1]
            found[-1] = Spoken(last.name, f"{last.text}\n{line}", f"{last.shown}\n{line}")
        else:
            found.append(Spoken("", line, line))
    return found


def newest_round(transcript: str) -> Round:
    """The round that the last instruction opened."""
    said = spoken(transcript)
    opened = max((place for place, one in enumerate(said) if one.name in ("user", "supervisor")), default=-1)
    newest = said[opened + 1 :]
    agent = [one.text for one in newest if one.name == "agent"]
    return Round(
        earlier="\n".join(one.shown for one in said[: max(opened, 0)]),
        instruction=said[opened].text if opened >= 0 else "",
        results=tuple(one.text for one in newest if one.name == "tool"),
        says=agent[-1] if agent else "",
        log=tuple(one.text for one in newest if one.name == "log"),
    )

"""Weighs a claimed completion: only a quote of what a tool returned proves it. Pure text, no model.

Models repeat what an agent says of itself. A quote of a tool's result is no such repetition, and where it
stands nowhere, asking the agent to show it costs a round instead of a false success.
"""

import re
import unicodedata
from difflib import SequenceMatcher

from agency.agent.text import cut
from agency.enums import DecisionStatus
from agency.mission.decision import LoopDecision
from agency.mission.facts import spoken

SHORTEST = 12
_NEAR = 0.8
_SHOW = (
    "Show what proves that the objective is reached: call a tool whose result shows it. "
    "If something is still missing, do that first."
)
_NAME = re.compile(r"^\s*(?:\[round \d+\] )?tool: ?")
_ERROR = re.compile(r"\s*← error from ")
_PARTS = re.compile(r"\n|[;,]?\s+(?=←)")
_WORD = re.compile(r"[^\W_]+(?:[.,:/-][^\W_]+)*")


def weighed(decision: LoopDecision, transcript: str) -> LoopDecision:
    """The decision, or "continue" in place of a "complete" whose evidence no tool returned."""
    if decision.status is not DecisionStatus.COMPLETE or is_proof(decision.evidence or "", transcript):
        return decision
    return LoopDecision(
        status=DecisionStatus.CONTINUE,
        summary=decision.summary,
        reason=cut(f"The completion is claimed but not shown by any result. {decision.reason}", 4_000),
        next_input=_SHOW,
    )


def is_proof(evidence: str, transcript: str) -> bool:
    """Whether `evidence` is, nearly word for word, in what tools returned; true without tools.

    It may quote one line, several parted by semicolons, or go on from line to line. A mission without tools
    has only its agent's words, which prove nothing that the supervisor has not read.
    Numbers must be the same: a changed count is what a false proof looks like.
    """
    results = [one.text for one in spoken(transcript) if one.name == "tool"]
    if not results:
        return True
    good = [words(line) for text in results for line in text.splitlines() if not _ERROR.match(line)]
    parts = [part for part in _PARTS.split(evidence) if words(_NAME.sub("", part))]
    if not parts:
        return False
    return all(_is_quote(part, good) for part in parts) or _goes_on(words(evidence), good)


def _goes_on(quote: list[str], good: list[list[str]]) -> bool:
    """Whether `quote` follows the results over their ends of line; words found alone do not count."""
    return _is_near(quote, [word for line in good for word in line], together=2)


def _is_quote(part: str, good: list[list[str]]) -> bool:
    """Whether `part` is in one line, or each of what its semicolons part is."""
    if any(_is_near(words(_NAME.sub("", part)), line) for line in good):
        return True
    pieces = [piece for piece in part.split(";") if words(piece)]
    return len(pieces) > 1 and all(_is_quote(piece, good) for piece in pieces)


def _is_near(quote: list[str], line: list[str], together: int = 1) -> bool:
    if len(" ".join(quote)) < SHORTEST and quote != line:
        return False
    blocks = SequenceMatcher(None, quote, line, autojunk=False).get_matching_blocks()
    runs = [block for block in blocks if block.size >= together]
    found = {place for run in runs for place in range(run.a, run.a + run.size)}
    numbers = {place for place, word in enumerate(quote) if any(map(str.isdigit, word))}
    return len(found) >= _NEAR * len(quote) and numbers <= found


def words(text: str) -> list[str]:
    """What is compared of a text: its words and numbers, however they are written and quoted."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())

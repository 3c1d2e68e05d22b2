"""What follows from a decision: the rules that no supervisor can overrule. Decides; the runtime does it.

The decision is applied first, the limit only to "continue": completing on the last iteration is a
success, wanting to go on after it is `limit_reached`, which is none.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agency.enums import DecisionStatus
from agency.mission.loop import LoopDecision, RequiredInput, Wait
from agency.mission.placeholders import Counters

REPEATS = 3
"""So many equal instructions or answers in a row are no progress."""


@dataclass(frozen=True, slots=True)
class Round:
    """What one committed iteration asked for and brought, to compare with the next."""

    next_input: str | None
    answer: str


@dataclass(frozen=True, slots=True)
class GoOn:
    """The next iteration, with this instruction, after the mission's delay."""

    next_input: str


@dataclass(frozen=True, slots=True)
class Complete:
    """The objective is reached."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing is run until the wait is over."""

    wait: Wait


@dataclass(frozen=True, slots=True)
class Ask:
    """Nothing is run until a person has answered; `is_stuck` if nothing but the lack of progress is why."""

    required_input: RequiredInput
    is_stuck: bool = False


@dataclass(frozen=True, slots=True)
class Fail:
    """The objective cannot be reached."""

    summary: str


@dataclass(frozen=True, slots=True)
class LimitReached:
    """More was wanted than was allowed; `next_input` is where an extension goes on."""

    next_input: str


Course = GoOn | Complete | Pause | Ask | Fail | LimitReached


def course_of(decision: LoopDecision, counters: Counters, before: Sequence[Round], answer: str) -> Course:
    """How the loop goes on; `before` are the rounds so far, oldest first, `answer` is this round's."""
    match decision.status:
        case DecisionStatus.COMPLETE:
            return Complete()
        case DecisionStatus.FAILED:
            return Fail(decision.reason)
        case DecisionStatus.WAIT:
            assert decision.wait is not None
            return Pause(decision.wait)
        case DecisionStatus.BLOCKED:
            assert decision.required_input is not None
            return Ask(decision.required_input)
        case DecisionStatus.CONTINUE:
            assert decision.next_input is not None
            if counters.remaining == 0:
                return LimitReached(decision.next_input)
            stuck = _stuck([*before, Round(decision.next_input, answer)])
            return Ask(RequiredInput(question=stuck), is_stuck=True) if stuck else GoOn(decision.next_input)


def _stuck(rounds: Sequence[Round]) -> str | None:
    """What repeats itself, as a question to a person; `None` while there is progress."""
    last = rounds[-REPEATS:]
    if len(last) < REPEATS:
        return None
    if len({_plain(one.next_input or "") for one in last}) == 1:
        what = f"the same instruction was given {REPEATS} times in a row: {last[-1].next_input}"
    elif last[-1].answer.strip() and len({_plain(one.answer) for one in last}) == 1:
        what = f"the agent gave the same answer {REPEATS} times in a row"
    else:
        return None
    return f"The mission makes no progress ({what}). How should it go on?"


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()

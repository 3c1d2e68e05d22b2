"""A second look at what a small model called complete: at what the tools returned, without the agent's words.

A small model that has read "all done" finds it done. Asked only what the results show as left, it reads them.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from agency.agent.llm import LlmClient, with_structured_output
from agency.enums import DecisionStatus
from agency.errors import ModelOutputInvalid
from agency.mission.decision import LoopDecision, Wait
from agency.mission.evidence import words
from agency.mission.facts import newest_round
from agency.mission.instruction import is_nothing
from agency.mission.local_prompt import look_request
from agency.mission.prompt import Matter

LOOK_AFTER = 900
_LONGEST = 200
_Text = Annotated[str, Field(min_length=1, max_length=_LONGEST)]


class _Look(BaseModel):
    """Whether the results show the objective reached."""

    left: _Text
    verdict: Literal["all done", "go on", "wait"]
    proof: _Text

    @property
    def shows_all(self) -> bool:
        """Whether nothing is left; what is named as left and shown by the proof is not left."""
        if self.verdict == "wait" or is_nothing(self.proof):
            return False
        return is_nothing(self.left) or set(words(self.left)) <= set(words(self.proof))


def look_again(supervisor: LlmClient, matter: Matter, decision: LoopDecision) -> LoopDecision:
    """The completion with its evidence, or what the results of the newest round show to be left.

    Without results the agent's own words are what there is to weigh.
    """
    newest = newest_round(matter.transcript)
    if not newest.results:
        return decision.model_copy(update={"evidence": newest.says or None})
    try:
        look = with_structured_output(supervisor, _Look).generate(look_request(matter))
    except ModelOutputInvalid:
        return decision
    if look.shows_all:
        return decision.model_copy(update={"evidence": _whole_words(look.proof)})
    if look.verdict == "wait":
        return LoopDecision(
            status=DecisionStatus.WAIT,
            reason=f"Not there yet: {look.left}",
            summary=decision.summary,
            wait=Wait(seconds=LOOK_AFTER, what_for=look.left),
        )
    return LoopDecision(
        status=DecisionStatus.CONTINUE,
        reason=f"The results show that something is left: {look.left}",
        summary=decision.summary,
        next_input=f"Finish what is left: {look.left}",
    )


def _whole_words(text: str) -> str:
    """Without the word in which the form's length has cut it: half a number is another number."""
    return text.rsplit(maxsplit=1)[0] if len(text) >= _LONGEST else text

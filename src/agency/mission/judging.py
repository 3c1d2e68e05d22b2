"""How a small model judges best: not by the answer it would give, but by how near each answer was.

It leans to some verdicts whatever it reads, and believes an agent that says it is done. So it is asked twice
for the first word of its verdict, on the whole transcript and on what tools returned, without the agent's
words; code weighs both (`calibration`). Neither costs more than reading: nothing is written.
"""

import json
from collections.abc import Sequence
from dataclasses import replace

from agency.agent.llm import LlmClient
from agency.agent.providers.local_odds import odds_request
from agency.enums import DecisionStatus
from agency.errors import ModelOutputInvalid
from agency.mission.calibration import CALIBRATED
from agency.mission.facts import newest_round, spoken
from agency.mission.local_prompt import decision_request
from agency.mission.prompt import Matter

VERDICTS = {
    "all done": DecisionStatus.COMPLETE,
    "go on": DecisionStatus.CONTINUE,
    "wait": DecisionStatus.WAIT,
    "ask a person": DecisionStatus.BLOCKED,
    "impossible": DecisionStatus.FAILED,
}
BEGUN = '{"verdict": "'


def judged(supervisor: LlmClient, matter: Matter) -> DecisionStatus | None:
    """The status, or `None` for a model that tells no odds or was never calibrated."""
    weights = CALIBRATED.get(getattr(supervisor, "model_name", None) or "")
    if weights is None or not getattr(supervisor, "tells_odds", False):
        return None
    try:
        read = features(supervisor, matter)
    except ModelOutputInvalid:
        return None
    scores = {status: scored(row, read) for status, row in zip(VERDICTS.values(), weights, strict=True)}
    return max(scores, key=lambda status: scores[status])


def scored(row: Sequence[float], read: Sequence[float]) -> float:
    """A status's score: its first number, and each feature by its weight."""
    return row[0] + sum(weight * value for weight, value in zip(row[1:], read, strict=True))


def features(supervisor: LlmClient, matter: Matter) -> list[float]:
    """How likely each verdict is after the whole transcript and after it without the agent's words.

    And, which code sees better than any model, whether the agent ended with a question.
    """
    blind = replace(matter, transcript=_without_agent(matter))
    asks = float(newest_round(matter.transcript).asks)
    # The whole transcript last: what is written next begins with the same words, which the server keeps.
    unclaimed = _odds(supervisor, blind)
    return [*_odds(supervisor, matter), *unclaimed, asks]


def _without_agent(matter: Matter) -> str:
    return "\n".join(one.shown for one in spoken(matter.transcript) if one.name != "agent")


def _odds(supervisor: LlmClient, matter: Matter) -> list[float]:
    text = supervisor.generate(odds_request(decision_request(matter), BEGUN, list(VERDICTS))).text
    try:
        told = json.loads(text)
        return [float(told[verdict]) for verdict in VERDICTS]
    except (ValueError, KeyError, TypeError) as exc:
        raise ModelOutputInvalid("no odds were told", raw=text) from exc

"""A small model's verdict by its odds: read twice, weighed by code; the model's own where it tells none."""

import json
from dataclasses import replace
from typing import Any

import pytest

from agency.agent import LlmRequest, LlmResponse, Message, Usage
from agency.agent.providers.schema_mode import choices, messages
from agency.enums import DecisionStatus
from agency.mission.branches import BranchedLoopDecision
from agency.mission.calibration import CALIBRATED
from agency.mission.judging import VERDICTS, features, judged
from agency.mission.loop import evaluate_loop_decision
from agency.mission.placeholders import Counters
from agency.mission.prompt import Matter

TRANSCRIPT = """user: Feed all six horses.
[round 2] tool: ← feed: Bella ok, 6 of 6 fed
[round 2] agent: All horses are fed. Is that all?"""
MATTER = Matter("Feed all six horses.", Counters(2, 4), "Go on.", "Five are fed.", TRANSCRIPT)
EVEN = dict.fromkeys(VERDICTS, -2.0)
LIKELY = {
    "all done": DecisionStatus.COMPLETE,
    "go on": DecisionStatus.CONTINUE,
    "wait": DecisionStatus.WAIT,
    "ask a person": DecisionStatus.BLOCKED,
    "impossible": DecisionStatus.FAILED,
}


class Telling:
    """A local model that tells these odds, then writes these answers."""

    model_name = "local:default"
    tells_odds = True

    def __init__(self, *answers: Any, odds: Any = EVEN) -> None:
        self.answers, self.odds = list(answers), odds
        self.asked: list[LlmRequest] = []

    def generate(self, request: LlmRequest) -> LlmResponse:
        self.asked.append(request)
        said = self.odds if "odds" in request.settings else self.answers.pop(0)
        text = said if isinstance(said, str) else json.dumps(said)
        return LlmResponse([Message(role="assistant", content=text)], Usage(model_calls=1))


def leaning(verdict: str) -> dict[str, float]:
    return {**dict.fromkeys(VERDICTS, -5.0), "impossible": -9.0, verdict: -0.05}


@pytest.mark.parametrize(("verdict", "status"), LIKELY.items())
def test_odds_that_leave_no_doubt_decide(verdict: str, status: DecisionStatus) -> None:
    told = replace(MATTER, transcript=TRANSCRIPT.removesuffix(" Is that all?"))
    assert judged(Telling(odds=leaning(verdict)), told) is status


def test_the_second_reading_holds_no_word_of_the_agent() -> None:
    supervisor = Telling()
    read = features(supervisor, MATTER)
    blind, whole = (request.contents[-1].content for request in supervisor.asked)
    assert "All horses are fed" in whole and "6 of 6 fed" in whole
    assert "All horses are fed" not in blind and "6 of 6 fed" in blind
    assert read == [*EVEN.values(), *EVEN.values(), 1.0]


def test_what_is_written_must_fit_the_status_that_was_decided() -> None:
    asked = {"verdict": "ask a person", "shown": "six", "missing": "nothing", "detail": "Which hay?"}
    supervisor = Telling(asked, odds=leaning("ask a person"))
    decision = evaluate_loop_decision(supervisor, MATTER, BranchedLoopDecision).decision
    assert decision is not None and decision.status is DecisionStatus.BLOCKED
    schema = supervisor.asked[-1].output_schema
    assert schema is not None
    assert list(schema.schema["properties"]) == ["verdict", "shown", "missing", "detail"]
    assert schema.schema["properties"]["verdict"] == {"const": "ask a person"}


def test_what_is_written_is_asked_for_in_the_words_that_the_server_has_just_read() -> None:
    asked = {"verdict": "ask a person", "shown": "six", "missing": "nothing", "detail": "Which hay?"}
    supervisor = Telling(asked, odds=leaning("ask a person"))
    evaluate_loop_decision(supervisor, MATTER, BranchedLoopDecision)
    chats = [messages(request, choices(request)) for request in supervisor.asked]
    assert chats[1] == chats[2] != chats[0]


def test_nothing_missing_does_not_overrule_what_the_odds_decided() -> None:
    going_on = {"verdict": "go on", "shown": "five", "missing": "nothing", "detail": "Feed Max."}
    supervisor = Telling(going_on, odds=leaning("go on"))
    evaluation = evaluate_loop_decision(supervisor, MATTER, BranchedLoopDecision)
    assert evaluation.decision is not None and evaluation.decision.status is DecisionStatus.CONTINUE
    assert evaluation.usage.model_calls == 3


@pytest.mark.parametrize("odds", ["no json", "[]", {"all done": -1.0}, dict.fromkeys(VERDICTS)])
def test_odds_that_cannot_be_read_leave_the_verdict_to_the_model(odds: Any) -> None:
    answer = {"shown": "five", "missing": "one", "verdict": "go on", "detail": "Feed Max."}
    evaluation = evaluate_loop_decision(Telling(answer, odds=odds), MATTER, BranchedLoopDecision)
    assert evaluation.decision is not None and evaluation.decision.status is DecisionStatus.CONTINUE


def test_a_model_that_was_never_calibrated_is_not_asked_for_odds() -> None:
    class Stranger(Telling):
        model_name = "local:/a/file.gguf"

    stranger = Stranger()
    assert judged(stranger, MATTER) is None
    assert stranger.asked == []


def test_each_status_has_a_weight_for_each_feature() -> None:
    for rows in CALIBRATED.values():
        assert [len(row) for row in rows] == [1 + len(features(Telling(), MATTER))] * len(VERDICTS)

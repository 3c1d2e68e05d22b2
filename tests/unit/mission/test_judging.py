"""A small model's verdict by a probe of its state; the model's own where there is none."""

import json
from typing import Any

import pytest

from agency.agent import LlmRequest, LlmResponse, Message, Usage
from agency.agent.providers.local_probe import probe_of
from agency.agent.providers.schema_mode import choices, messages
from agency.enums import DecisionStatus
from agency.mission.branches import BranchedLoopDecision
from agency.mission.judging import PROBES, judged
from agency.mission.loop import evaluate_loop_decision
from agency.mission.placeholders import Counters
from agency.mission.prompt import Matter

TRANSCRIPT = """user: Feed all six horses.
[round 2] tool: ← feed: Bella ok, 6 of 6 fed
[round 2] agent: All horses are fed. Is that all?"""
MATTER = Matter("Feed all six horses.", Counters(2, 4), "Go on.", "Five are fed.", TRANSCRIPT)
EVEN = {status.value: 0.2 for status in DecisionStatus}


class Read:
    """A local model whose state a probe reads as these scores, and which then writes these answers."""

    model_name = "local:default"
    takes_probes = True

    def __init__(self, *answers: Any, scores: Any = EVEN) -> None:
        self.answers, self.scores = list(answers), scores
        self.asked: list[LlmRequest] = []

    def generate(self, request: LlmRequest) -> LlmResponse:
        self.asked.append(request)
        said = self.scores if "probe" in request.settings else self.answers.pop(0)
        text = said if isinstance(said, str) else json.dumps(said)
        return LlmResponse([Message(role="assistant", content=text)], Usage(model_calls=1))


def leaning(status: str) -> dict[str, float]:
    return {**EVEN, status: 0.7}


@pytest.mark.parametrize("status", list(DecisionStatus))
def test_the_highest_score_decides(status: DecisionStatus) -> None:
    assert judged(Read(scores=leaning(status.value)), MATTER) is status


def test_what_is_written_must_fit_the_status_that_was_decided() -> None:
    asked = {"verdict": "ask a person", "shown": "six", "missing": "nothing", "detail": "Which hay?"}
    supervisor = Read(asked, scores=leaning("blocked"))
    decision = evaluate_loop_decision(supervisor, MATTER, BranchedLoopDecision).decision
    assert decision is not None and decision.status is DecisionStatus.BLOCKED
    schema = supervisor.asked[-1].output_schema
    assert schema is not None
    assert list(schema.schema["properties"]) == ["verdict", "shown", "missing", "detail"]
    assert schema.schema["properties"]["verdict"] == {"const": "ask a person"}


def test_what_is_written_is_asked_for_in_the_words_that_the_server_has_just_read() -> None:
    asked = {"verdict": "ask a person", "shown": "six", "missing": "nothing", "detail": "Which hay?"}
    supervisor = Read(asked, scores=leaning("blocked"))
    evaluate_loop_decision(supervisor, MATTER, BranchedLoopDecision)
    chats = [messages(request, choices(request)) for request in supervisor.asked]
    assert chats[0] == chats[1]


def test_nothing_missing_does_not_overrule_what_was_decided() -> None:
    going_on = {"verdict": "go on", "shown": "five", "missing": "nothing", "detail": "Feed Max."}
    supervisor = Read(going_on, scores=leaning("continue"))
    evaluation = evaluate_loop_decision(supervisor, MATTER, BranchedLoopDecision)
    assert evaluation.decision is not None and evaluation.decision.status is DecisionStatus.CONTINUE
    assert evaluation.usage.model_calls == 2


@pytest.mark.parametrize("scores", ["no json", "[]", {"complete": 1.0}, dict.fromkeys(EVEN)])
def test_scores_that_cannot_be_read_leave_the_verdict_to_the_model(scores: Any) -> None:
    answer = {"shown": "five", "missing": "one", "verdict": "go on", "detail": "Feed Max."}
    evaluation = evaluate_loop_decision(Read(answer, scores=scores), MATTER, BranchedLoopDecision)
    assert evaluation.decision is not None and evaluation.decision.status is DecisionStatus.CONTINUE


def test_a_model_without_a_probe_is_not_read() -> None:
    class Stranger(Read):
        model_name = "local:/a/file.gguf"

    stranger = Stranger()
    assert judged(stranger, MATTER) is None
    assert stranger.asked == []


@pytest.mark.parametrize("name", PROBES.values())
def test_each_probe_has_a_row_for_each_status_and_a_weight_for_each_logit(name: str) -> None:
    probe = probe_of(name)
    assert set(probe.rows) == {status.value for status in DecisionStatus}
    read = [0.0] * len(probe.begun) * len(probe.tokens)
    assert set(probe.scores(read)) == set(probe.rows)

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from agency.agent import LlmRequest, LlmResponse, Message, Usage
from agency.enums import DecisionStatus
from agency.errors import ModelUnavailable
from agency.mission.loop import LoopDecision, evaluate_loop_decision
from agency.mission.placeholders import Counters
from agency.mission.prompt import Matter

BASE = {"reason": "because", "summary": "half done"}
MATTER = Matter("Do it", Counters(1, 3), "", "", "tool: ← do: it is done\nagent: Done.")


def decide(**given: Any) -> LoopDecision:
    return LoopDecision.model_validate({**BASE, **given})


class Saying:
    """A supervisor that says these texts in turn and keeps what it was asked."""

    def __init__(self, *texts: str | Exception) -> None:
        self.texts = list(texts)
        self.asked: list[LlmRequest] = []

    def generate(self, request: LlmRequest) -> LlmResponse:
        self.asked.append(request)
        said = self.texts.pop(0)
        if isinstance(said, Exception):
            raise said
        return LlmResponse([Message(role="assistant", content=said)], Usage(model_calls=1, input_tokens=3))


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"status": "continue"}, "next_input"),
        ({"status": "wait"}, "wait"),
        ({"status": "blocked"}, "required_input"),
    ],
)
def test_a_status_needs_its_own_field(given: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError, match=f"needs {field}"):
        decide(**given)


@pytest.mark.parametrize("status", ["complete", "failed", "wait", "blocked"])
def test_an_instruction_beside_another_status_is_a_contradiction(status: str) -> None:
    own = {"wait": {"wait": {"seconds": 5}}, "blocked": {"required_input": {"question": "Which?"}}}
    with pytest.raises(ValidationError, match="must not have next_input"):
        decide(status=status, next_input="Read the next file", **own.get(status, {}))


def test_a_leftover_beside_another_status_counts_as_left_out() -> None:
    decision = decide(status="complete", next_input="n/a", wait={}, required_input=None, evidence="none")
    assert (decision.next_input, decision.wait, decision.evidence) == (None, None, None)


@pytest.mark.parametrize("said", ["continue", "'follow_up'", "N/A", ""])
def test_a_leftover_is_no_instruction(said: str) -> None:
    with pytest.raises(ValidationError, match="next_input"):
        decide(status="continue", next_input=said)


@pytest.mark.parametrize("said", ["n/a", "none", "Nothing.", "…", "blocked", "required_input", "question?"])
def test_a_leftover_is_no_question_to_a_person(said: str) -> None:
    with pytest.raises(ValidationError, match="asks nothing"):
        decide(status="blocked", required_input={"question": said})


def test_a_question_that_asks_nothing_is_sent_back_with_its_fault() -> None:
    asked = {**BASE, "status": "blocked", "required_input": {"question": "n/a"}}
    good = {**asked, "required_input": {"question": "Which shop first?"}}
    supervisor = Saying(json.dumps(asked), json.dumps(good))
    evaluation = evaluate_loop_decision(supervisor, MATTER)
    assert evaluation.decision is not None and evaluation.decision.required_input is not None
    assert evaluation.decision.required_input.question == "Which shop first?"
    assert "'n/a' asks nothing" in supervisor.asked[1].contents[-1].content


def test_follow_up_is_another_name() -> None:
    assert decide(status="continue", follow_up="Read b.txt").follow_up == "Read b.txt"
    assert decide(status="continue", next_input="Read b.txt").next_input == "Read b.txt"


@pytest.mark.parametrize(
    "wait",
    [{"what_for": "rain"}, {"seconds": 5, "signal": "go"}, {"seconds": 0}, {"until": "2026-12-01T10:00:00"}],
)
def test_a_wait_needs_exactly_one_end_and_a_time_zone(wait: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="wait"):
        decide(status="wait", wait=wait)


@pytest.mark.parametrize("name", ["orders/paid", "two\nlines", "x" * 101, "a\x00b"])
def test_a_wait_for_a_signal_that_nobody_could_send_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="signal"):
        decide(status="wait", wait={"signal": name})


def test_a_wait_by_time_has_an_end_and_others_have_none() -> None:
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)
    assert decide(status="wait", wait={"seconds": 90, "signal": ""}).ends_at(now) == now.replace(
        minute=1, second=30
    )
    assert decide(status="wait", wait={"until": "2026-12-01T00:00:00Z"}).ends_at(now) == datetime(
        2026, 12, 1, tzinfo=UTC
    )
    assert decide(status="wait", wait={"signal": "paid"}).ends_at(now) is None


def test_a_choice_needs_choices() -> None:
    with pytest.raises(ValidationError, match="two choices"):
        decide(status="blocked", required_input={"question": "Which?", "kind": "choice", "choices": ["a"]})


def test_a_model_gives_its_reason_before_its_status() -> None:
    assert list(LoopDecision.model_json_schema()["properties"])[:2] == ["reason", "status"]


def test_a_valid_answer_is_the_decision() -> None:
    supervisor = Saying(json.dumps({**BASE, "status": "continue", "next_input": "Read b.txt"}))
    evaluation = evaluate_loop_decision(supervisor, MATTER)
    assert evaluation.decision is not None and evaluation.decision.status is DecisionStatus.CONTINUE
    assert evaluation.usage.model_calls == 1


def test_an_invalid_answer_is_sent_back_once_with_its_fault() -> None:
    good = json.dumps({**BASE, "status": "complete", "evidence": "do: it is done"})
    supervisor = Saying(json.dumps({**BASE, "status": "continue"}), good)
    evaluation = evaluate_loop_decision(supervisor, MATTER)
    assert evaluation.decision is not None and evaluation.decision.status is DecisionStatus.COMPLETE
    assert "needs next_input" in supervisor.asked[1].contents[-1].content
    assert evaluation.usage.model_calls == 2


def test_a_completion_counts_only_with_evidence_from_the_transcript_and_the_claim_is_kept() -> None:
    claims = [{**BASE, "status": "complete", "evidence": said} for said in ("do: it is done", "It is done.")]
    proven, unproven = (evaluate_loop_decision(Saying(json.dumps(one)), MATTER) for one in claims)
    assert proven.decision is not None and proven.decision.status is DecisionStatus.COMPLETE
    assert unproven.decision is not None and unproven.decision.status is DecisionStatus.CONTINUE
    assert (proven.claimed, unproven.claimed) == (True, True)
    assert proven.unproven is None
    assert unproven.unproven is not None and unproven.unproven.status is DecisionStatus.COMPLETE
    assert not evaluate_loop_decision(Saying(json.dumps({**BASE, "status": "failed"})), MATTER).claimed


@pytest.mark.parametrize(
    "said", ["I think it is complete.", "null", "[]", "", '{"status": "complete"', '{"status": "done"}']
)
def test_two_invalid_answers_are_no_decision_and_the_raw_text_is_kept(said: str) -> None:
    evaluation = evaluate_loop_decision(Saying("{}", said), MATTER)
    assert evaluation.decision is None
    assert evaluation.raw == said
    assert "LoopDecision" in evaluation.error


def test_a_supervisor_that_is_away_is_no_decision_either_way() -> None:
    with pytest.raises(ModelUnavailable):
        evaluate_loop_decision(Saying(ModelUnavailable("busy", 5.0)), MATTER)

import json
from typing import Any

import pytest

from agency.agent import LlmRequest, LlmResponse, Message, Usage
from agency.enums import DecisionStatus
from agency.mission.branches import BranchedLoopDecision
from agency.mission.examples import DECISIONS, LOOKS
from agency.mission.local_prompt import LOOK_RULES, RULES
from agency.mission.loop import Evaluation, evaluate_loop_decision
from agency.mission.placeholders import Counters
from agency.mission.prompt import Matter

TRANSCRIPT = """[round 2] supervisor: Feed the others.
[round 2] tool: ← feed: Bella ok, 6 of 6 fed
[round 2] agent: All horses are fed. Is that all?"""
MATTER = Matter("Feed all six horses.", Counters(2, 4), "Go on.", "Five are fed.", TRANSCRIPT)
DONE = {"shown": "all are fed", "missing": "nothing", "verdict": "all done", "detail": "All are fed."}
PROOF = {"left": "nothing", "verdict": "all done", "proof": "feed: Bella ok, 6 of 6 fed"}


class Saying:
    """A supervisor that gives these answers in turn and keeps what it was asked."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers = list(answers)
        self.asked: list[LlmRequest] = []

    def generate(self, request: LlmRequest) -> LlmResponse:
        self.asked.append(request)
        text = json.dumps(self.answers.pop(0))
        return LlmResponse([Message(role="assistant", content=text)], Usage(model_calls=1))


def evaluated(*answers: dict[str, Any], matter: Matter = MATTER) -> Evaluation:
    return evaluate_loop_decision(Saying(*answers), matter, BranchedLoopDecision)


@pytest.mark.parametrize(
    ("answer", "status", "field"),
    [
        ({"verdict": "go on", "detail": "Feed Max."}, DecisionStatus.CONTINUE, "next_input"),
        ({"verdict": "wait", "minutes": 5}, DecisionStatus.WAIT, "wait"),
        ({"verdict": "ask a person", "detail": "Which hay?"}, DecisionStatus.BLOCKED, "required_input"),
        ({"verdict": "impossible", "detail": "The stable burnt."}, DecisionStatus.FAILED, "reason"),
    ],
)
def test_each_verdict_is_read_as_a_decision_with_its_own_field(
    answer: dict[str, Any], status: DecisionStatus, field: str
) -> None:
    decision = evaluated({"shown": "one is fed", "missing": "five horses", **answer}).decision
    assert decision is not None and decision.status is status
    assert getattr(decision, field)
    assert (decision.summary, decision.reason) == ("one is fed", "five horses")


def test_a_verdict_to_ask_a_person_without_a_question_is_sent_back() -> None:
    asked = {"shown": "one is fed", "missing": "the hay's kind", "verdict": "ask a person"}
    supervisor = Saying({**asked, "detail": "nothing"}, {**asked, "detail": "Which hay?"})
    decision = evaluate_loop_decision(supervisor, MATTER, BranchedLoopDecision).decision
    assert decision is not None and decision.required_input is not None
    assert decision.required_input.question == "Which hay?"
    assert "'nothing' asks nothing" in supervisor.asked[1].contents[-1].content


def test_minutes_become_the_seconds_of_a_wait() -> None:
    decision = evaluated({"shown": "-", "missing": "the bus", "verdict": "wait", "minutes": 5}).decision
    assert decision is not None and decision.wait is not None
    assert (decision.wait.seconds, decision.wait.what_for) == (300, "the bus")


def test_a_completion_is_looked_at_again_without_the_agents_words() -> None:
    supervisor = Saying(DONE, PROOF)
    evaluation = evaluate_loop_decision(supervisor, MATTER, BranchedLoopDecision)
    assert evaluation.decision is not None and evaluation.decision.status is DecisionStatus.COMPLETE
    assert evaluation.decision.evidence == PROOF["proof"]
    assert evaluation.usage.model_calls == 2
    look = supervisor.asked[1]
    assert look.instructions == [LOOK_RULES]
    assert "Before: Five are fed." in look.contents[-1].content
    assert "6 of 6 fed" in look.contents[-1].content
    assert "All horses are fed" not in look.contents[-1].content


def test_what_the_proof_shows_is_not_left() -> None:
    decision = evaluated(DONE, {**PROOF, "left": "6 of 6 fed", "verdict": "go on"}).decision
    assert decision is not None and decision.status is DecisionStatus.COMPLETE


def test_a_number_that_the_forms_length_has_cut_is_not_part_of_the_proof() -> None:
    rows = "".join(f", horse {number} has had its hay" for number in range(100, 110))
    transcript = f"user: Feed all.\ntool: ← feed: 10 of 10 fed{rows}\nagent: Done."
    matter = Matter("Feed all.", Counters(1, 1), "", "", transcript)
    proof = f"feed: 10 of 10 fed{rows}"[: 200 - len(", horse 1")] + ", horse 1"
    assert len(proof) == 200
    decision = evaluated(DONE, {**PROOF, "proof": proof}, matter=matter).decision
    assert decision is not None and decision.status is DecisionStatus.COMPLETE


def test_nothing_missing_is_a_claim_of_completion_whatever_the_verdict() -> None:
    evaluation = evaluated({**DONE, "verdict": "go on", "missing": "Nothing is left."}, PROOF)
    assert evaluation.claimed
    assert evaluation.decision is not None and evaluation.decision.status is DecisionStatus.COMPLETE


@pytest.mark.parametrize(
    ("look", "status"),
    [
        ({"left": "Max error", "verdict": "go on", "proof": "nothing"}, DecisionStatus.CONTINUE),
        ({"left": "Max error", "verdict": "all done", "proof": PROOF["proof"]}, DecisionStatus.CONTINUE),
        ({"left": "hay comes tomorrow", "verdict": "wait", "proof": "nothing"}, DecisionStatus.WAIT),
        ({"left": "nothing", "verdict": "all done", "proof": "everybody was fed"}, DecisionStatus.CONTINUE),
        ({"left": ""}, DecisionStatus.CONTINUE),
    ],
)
def test_a_completion_that_the_second_look_does_not_find_is_only_claimed(
    look: dict[str, Any], status: DecisionStatus
) -> None:
    evaluation = evaluated(DONE, look)
    assert evaluation.claimed
    assert evaluation.decision is not None and evaluation.decision.status is status


def test_without_tools_the_agents_words_are_weighed_and_no_second_look_is_paid() -> None:
    matter = Matter("Write a line on rain.", Counters(1, 1), "", "", "user: Write.\nagent: The roof sings.")
    evaluation = evaluated(DONE, matter=matter)
    assert evaluation.decision is not None and evaluation.decision.evidence == "The roof sings."
    assert evaluation.usage.model_calls == 1


def test_the_examples_are_valid_answers_and_show_every_status() -> None:
    read = [BranchedLoopDecision.model_validate(one.answer).status for one in DECISIONS]
    assert set(read) == set(DecisionStatus)
    assert {one.answer["verdict"] for one in LOOKS} == {"all done", "go on", "wait"}


def test_rules_and_examples_stand_first_and_never_change() -> None:
    other = Matter("Sing.", Counters(1, 1), "", "", "agent: La.")
    first, second = (BranchedLoopDecision.request(matter) for matter in (MATTER, other))
    assert first.instructions == second.instructions == [RULES]
    assert first.contents[:-1] == second.contents[:-1]


def test_every_line_of_the_transcript_is_marked_as_data() -> None:
    asked = BranchedLoopDecision.request(MATTER).contents[-1].content
    wanted = ["Feed all six horses.", "Round 2 of 4", "Go on.", "Five are fed.", "> [round 2] tool: ← feed"]
    places = [asked.index(part) for part in wanted]
    assert places == sorted(places)
    assert all(f"> {line}" in asked.splitlines() for line in TRANSCRIPT.splitlines())


def test_a_grammar_holds_the_answer_to_one_verdict_with_its_field() -> None:
    branches = BranchedLoopDecision.model_json_schema()["oneOf"]
    assert [list(one["properties"]) for one in branches] == [
        ["shown", "missing", "verdict", "detail"],
        ["shown", "missing", "verdict", "minutes"],
    ]
    assert all(one["additionalProperties"] is False for one in branches)


@pytest.mark.parametrize(
    "given",
    [
        {"verdict": ["all done"]},
        {"verdict": {"all": "done"}},
        {"verdict": "wait", "minutes": None},
        {"verdict": "wait", "minutes": "soon"},
        {"verdict": "wait", "minutes": [5]},
        {"verdict": "perhaps"},
    ],
)
def test_an_answer_that_no_grammar_held_is_sent_back_and_then_no_decision(given: dict[str, Any]) -> None:
    wrong = {"shown": "five", "missing": "one", **given}
    evaluation = evaluated(wrong, wrong)
    assert evaluation.decision is None
    assert evaluation.error

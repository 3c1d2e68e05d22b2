import pytest

from agency.enums import DecisionStatus
from agency.mission.decision import LoopDecision
from agency.mission.evidence import is_proof, weighed

TRANSCRIPT = """[round 1] user: Write tests for every function.
[round 1] tool: ← coverage: money.py add, split, round tested; 5 of 8 functions untested
[round 1] agent: All functions are tested now. The task is complete."""
WORDS_ONLY = """user: Write a poem on rain.
agent: Rain falls, and the roof sings."""


def complete(evidence: str | None) -> LoopDecision:
    return LoopDecision(status=DecisionStatus.COMPLETE, reason="It is.", summary="Tested.", evidence=evidence)


@pytest.mark.parametrize(
    "quote",
    [
        "← coverage: money.py add, split, round tested; 5 of 8 functions untested",
        "[round 1] tool: ← coverage: money.py add, split, round tested",
        '"Coverage:  money.py ADD, split, round  tested"',
        "coverage: money.py add, split and round tested",
    ],
)
def test_a_quote_of_a_result_proves_a_completion_in_any_quoting(quote: str) -> None:
    assert weighed(complete(quote), TRANSCRIPT) == complete(quote)


@pytest.mark.parametrize(
    "claim",
    [
        None,
        "n/a",
        "tested",
        "All functions are tested now.",
        "agent: All functions are tested now. The task is complete.",
        "The coverage tool says that every function has a test.",
        "coverage: money.py add, split, round tested; 0 of 8 functions untested",
    ],
)
def test_a_completion_that_no_result_shows_goes_on_with_what_is_to_be_shown(claim: str | None) -> None:
    decision = weighed(complete(claim), TRANSCRIPT)
    assert decision.status is DecisionStatus.CONTINUE
    assert decision.next_input is not None and decision.next_input.startswith("Show what proves")
    assert decision.evidence is None
    assert (decision.summary, "It is." in decision.reason) == ("Tested.", True)


@pytest.mark.parametrize("evidence", ["Rain falls, and the roof sings.", "a poem was written", None])
def test_without_tools_there_is_nothing_to_weigh(evidence: str | None) -> None:
    assert weighed(complete(evidence), WORDS_ONLY) == complete(evidence)


def test_a_short_quote_proves_only_as_a_whole_result() -> None:
    transcript = "user: Save it.\ntool: ← save: ok\nagent: Saved it, ok."
    assert is_proof("save: ok", transcript)
    assert not is_proof("ok", transcript)


def test_a_tool_line_inside_another_text_proves_nothing() -> None:
    transcript = "user: Save it.\ntool: ← save: refused\nagent: Done.\n  tool: ← save: all five files saved"
    assert not is_proof("save: all five files saved", transcript)


def test_each_line_of_a_proof_is_a_line_of_a_result_and_no_error_is() -> None:
    transcript = (
        "user: Book both.\ntool: ← book: room A, 4 May, confirmed\n  ← error from book: room B, 5 May, taken"
    )
    assert is_proof("← book: room A, 4 May, confirmed", transcript)
    assert not is_proof("book: room B, 5 May, taken", transcript)
    assert is_proof("book: room A, 4 May; room A, 4 May, confirmed", transcript)
    assert not is_proof("← book: room A, 4 May, confirmed; ← book: room B, 5 May, confirmed", transcript)
    assert not is_proof("book: room A, 4 May, taken, room B, 5 May, confirmed", transcript)


TABLE = """user: Who owes the fee? File the names.
[round 1] tool: ← accounts: 2 of 187 owe
  Brandt, Hauke    96,00
  Lüders, Imke     48,00
[round 1] agent: The treasurer has both names.
[round 1] tool: ← file: treasurer/owing.txt saved, 2 names"""


def test_a_quote_may_go_on_over_lines_and_results() -> None:
    assert is_proof("accounts: 2 of 187 owe, Brandt, Hauke 96,00, Lüders, Imke 48,00", TABLE)
    assert is_proof("Lüders, Imke 48,00 … file: treasurer/owing.txt saved, 2 names", TABLE)


@pytest.mark.parametrize(
    "claim",
    [
        "accounts: 2 of 187 owe, Brandt, Hauke 96,00, Lüders, Imke 84,00",
        "file: treasurer/owing.txt saved, 3 names, Brandt, Hauke, Lüders, Imke",
        "The accounts of Hauke and Imke owe, so the treasurer saved names",
    ],
)
def test_what_goes_on_over_lines_changes_no_number_and_is_more_than_single_words(claim: str) -> None:
    assert not is_proof(claim, TABLE)


def test_other_decisions_are_left_as_they_are() -> None:
    decision = LoopDecision(status=DecisionStatus.FAILED, reason="It burnt.", summary="Nothing.")
    assert weighed(decision, TRANSCRIPT) is decision

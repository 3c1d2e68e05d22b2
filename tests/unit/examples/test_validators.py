"""The grounded validator: what it accepts, and that its feedback names the field that does not hold."""

import json
from typing import Any

import pytest
from records.record import DocumentInput, Kind, Record
from records.samples import samples
from records.tools import SUM_OK
from records.validators import GroundedValidator

from agency.execution import ToolScratchpad, ValidatorResponse

PAPERS = {sample.name: sample for sample in samples()}
INVOICE = "rechnung-dachdecker"


def judge(paper_name: str, checked: bool | None = None, /, **changes: Any) -> ValidatorResponse:
    """The verdict on the right record of a paper after some changes; `checked` is what was recorded."""
    paper, pad = PAPERS[paper_name], ToolScratchpad()
    if checked is not None:
        pad.record(SUM_OK, checked)
    response = json.dumps(paper.expected | changes)
    return GroundedValidator().validate(response, DocumentInput.model_validate(paper.input), pad)


def complaints(verdict: ValidatorResponse) -> list[str]:
    """The fields that the feedback names, in order."""
    assert not verdict.validation_successful
    assert verdict.retry_needed
    lines = (verdict.feedback or "").splitlines()
    return [line[2:].split(":")[0] for line in lines if line.startswith("- ")]


@pytest.mark.parametrize("name", PAPERS)
def test_the_stored_answer_of_each_paper_is_accepted(name: str) -> None:
    assert judge(name, PAPERS[name].expected["sum_ok"]).validation_successful


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("date", "2026-03-13"),
        ("reference", "2026-0319"),
        ("total", 3073.81),
        ("vendor_id", "V-104"),
        ("vendor_id", None),
        ("sum_ok", False),
        ("sum_ok", None),
        ("reference", None),
        ("total", None),
        ("date", None),
    ],
)
def test_a_wrong_value_is_named(field: str, value: Any) -> None:
    assert complaints(judge(INVOICE, True, **{field: value})) == [field]


def test_a_name_that_is_not_printed_is_named() -> None:
    verdict = judge("cv-okafor", name="Ada Okafor")
    assert complaints(verdict) == ["name"]
    assert "'Ada Okafor' is not in the document" in (verdict.feedback or "")


def test_all_wrong_values_are_named_at_once() -> None:
    assert complaints(judge(INVOICE, True, date="2025-03-12", total=3073.0)) == ["date", "total"]


def test_a_german_total_and_date_are_found_in_the_document() -> None:
    assert judge(INVOICE, True, total=3073.18, date="2026-03-12").validation_successful


def test_the_feedback_for_a_date_says_which_dates_there_are() -> None:
    verdict = judge("meeting-note", date="2026-06-12")
    assert "2026-06-12 is not in the document; it has 2026-06-11 and 2026-06-18" in (verdict.feedback or "")


@pytest.mark.parametrize("reference", ["RECHNUNG", "Gerüst, 4 Tage", "12. März 2026"])
def test_a_reference_is_one_printed_word_with_a_digit(reference: str) -> None:
    assert complaints(judge(INVOICE, True, reference=reference)) == ["reference"]


def test_an_invoice_whose_sum_nobody_checked_is_refused() -> None:
    verdict = judge(INVOICE, None)
    assert complaints(verdict) == ["sum_ok"]
    assert "call check_total" in (verdict.feedback or "")


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("cv-okafor", {"total": 34500}),
        ("cv-okafor", {"vendor_id": "V-152"}),
        ("meeting-note", {"total": 2350}),
        ("meeting-note", {"sum_ok": True}),
        ("order-email", {"sum_ok": False}),
        ("order-email", {"vendor_id": "V-104"}),
        ("invoice-or-not", {"total": 14.9}),
        ("invoice-or-not", {"date": "2026-05-31"}),
    ],
)
def test_a_printed_value_that_this_kind_of_paper_cannot_have_is_named(
    name: str, changes: dict[str, Any]
) -> None:
    verdict = judge(name, **changes)
    assert complaints(verdict) == list(changes)
    assert f"must be null for kind {PAPERS[name].expected['kind']}" in (verdict.feedback or "")


def test_an_advert_that_calls_itself_an_invoice_does_not_pass_as_one() -> None:
    verdict = judge("invoice-or-not", True, kind="invoice", total=14.9, sum_ok=True)
    assert complaints(verdict) == ["date", "reference"]
    assert "the kind is wrong" in (verdict.feedback or "")


def test_another_input_type_is_a_broken_promise() -> None:
    with pytest.raises(TypeError, match="DocumentInput"):
        GroundedValidator().validate("{}", None, ToolScratchpad())


@pytest.mark.parametrize("word", ["null", "None", "N/A", " not specified ", ""])
def test_a_word_for_nothing_is_nothing(word: str) -> None:
    values = PAPERS["cv-okafor"].expected | {"reference": word, "total": word, "date": word}
    record = Record.model_validate(values)
    assert (record.kind, record.reference, record.total, record.date) == (Kind.CV, None, None, None)

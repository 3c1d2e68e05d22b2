"""The job as a whole, with a model that follows a script."""

import json
from typing import Any

import pytest
from records.agents import RecordsClerk
from records.compare import is_right
from records.executions import ExtractRecords
from records.record import DocumentInput, Record
from records.samples import Sample, samples

from agency.agent import ToolCall
from agency.agent.testing import ScriptedLlm
from agency.execution import Conversation, ExecutionResult

PAPERS = {sample.name: sample for sample in samples()}


def run(name: str, *script: Any) -> tuple[ExecutionResult, Conversation, ScriptedLlm]:
    llm = ScriptedLlm(*script)
    paper = DocumentInput.model_validate(PAPERS[name].input)
    conversation = Conversation(RecordsClerk.build(llm), execution_input=paper)
    return ExtractRecords().run(paper, conversation), conversation, llm


def add_up(*amounts: str, total: str) -> ToolCall:
    arguments = {"amounts": list(amounts), "total": total}
    return ToolCall(tool_call_id="sum", name="check_total", arguments=arguments)


def record(name: str, **changes: Any) -> str:
    return json.dumps(PAPERS[name].expected | changes)


@pytest.mark.parametrize("sample", PAPERS.values(), ids=PAPERS)
def test_a_paper_is_short_enough_for_a_model_on_a_laptop(sample: Sample) -> None:
    assert 8 <= len(sample.text.splitlines()) <= 25
    assert len(sample.text) <= 600


def test_there_are_enough_papers_of_every_kind() -> None:
    assert len(PAPERS) >= 8
    assert {sample.expected["kind"] for sample in PAPERS.values()} == {
        "invoice",
        "order",
        "cv",
        "meeting_note",
        "advert",
    }


def test_a_record_has_few_flat_fields() -> None:
    properties = Record.model_json_schema()["properties"]
    assert len(properties) == 7
    assert not any(each.get("type") in {"object", "array"} for each in properties.values())


def test_a_paper_that_needs_no_tool_is_done_in_one_answer() -> None:
    result, conversation, _ = run("meeting-note", record("meeting-note"))
    assert result.success
    assert conversation.attempt == 1
    assert is_right(result.output, PAPERS["meeting-note"].expected)


def test_a_computed_total_is_sent_back_and_the_sum_need_not_be_checked_again() -> None:
    call = add_up("432.00", "78.00", "66.00", "120.00", total="716.00")
    wrong = record("invoice-catering", total=696.0)
    result, conversation, llm = run("invoice-catering", call, wrong, record("invoice-catering"))
    assert result.success
    assert conversation.attempt == 2
    assert is_right(result.output, PAPERS["invoice-catering"].expected)
    feedback = llm.requests[2].contents[-1]
    assert "total: 696.00 is not in the document" in str(feedback)


def test_a_new_check_counts_for_more_than_an_earlier_one() -> None:
    paper = PAPERS["invoice-garden"]
    careless = add_up("210.00", "90.00", total="335.50")
    careful = add_up("210.00", "90.00", "35.50", total="335.50")
    script = (careless, record(paper.name, date="2026-03-28", sum_ok=False), careful, record(paper.name))
    result, conversation, _ = run(paper.name, *script)
    assert (conversation.attempt, is_right(result.output, paper.expected)) == (2, True)


def test_a_model_that_insists_on_a_wrong_value_ends_in_an_honest_failure() -> None:
    wrong = record("cv-okafor", date="2026-02-04")
    result, _, _ = run("cv-okafor", wrong, wrong, wrong, "The date could not be settled.")
    assert not result.success
    assert result.failure_code == "max_retries_exceeded"
    assert result.failure_summary == "The date could not be settled."


def test_the_input_says_which_field_is_missing() -> None:
    with pytest.raises(ValueError, match="text"):
        DocumentInput.model_validate({"document": "a"})


def test_braces_in_a_document_stay_as_they_are() -> None:
    llm = ScriptedLlm(record("cv-okafor"))
    paper = DocumentInput(document="odd", text="{text} {0} {name}")
    ExtractRecords().execute(paper, Conversation(RecordsClerk.build(llm), execution_input=paper))
    assert "{text} {0} {name}" in str(llm.requests[0].contents[0])

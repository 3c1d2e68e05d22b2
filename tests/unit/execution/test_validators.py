"""The validators that agency brings, each by itself."""

import logging
from datetime import date
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from agency.errors import ConfigurationError
from agency.execution import (
    BaseExecutionValidator,
    IsValidJsonValidator,
    MatchesSchemaValidator,
    StopExecutionValidator,
    ToolScratchpad,
    ValidatorFailureResponse,
    ValidatorResponse,
    ValidatorSuccessResponse,
)
from agency.execution.validators import make_validator, validator_name


class Line(BaseModel):
    name: str
    price: float = 0.0


class Invoice(BaseModel):
    model_config = ConfigDict(strict=True)

    day: date
    lines: list[Line] = []


SCHEMA = {
    "type": "object",
    "required": ["day"],
    "properties": {"day": {"type": "string"}, "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}}},
    "$defs": {"line": {"type": "object", "properties": {"price": {"type": "number", "maximum": 10}}}},
}


def judge(
    validator: BaseExecutionValidator, response: str, pad: ToolScratchpad | None = None
) -> ValidatorResponse:
    return validator.validate(response, None, pad or ToolScratchpad())


def feedback(validator: BaseExecutionValidator, response: str) -> str:
    said = judge(validator, response)
    assert not said.validation_successful
    assert said.retry_needed
    return said.feedback or ""


def test_responses_have_the_defaults_that_validators_rely_on():
    success, failure = ValidatorSuccessResponse(), ValidatorFailureResponse("no")
    assert success.validation_successful
    assert not failure.validation_successful
    assert (failure.retry_needed, failure.feedback, failure.failure_code) == (True, "no", None)
    assert ValidatorResponse(False) == ValidatorResponse(False, True, None, None)


@pytest.mark.parametrize("text", ['{"a": 1}', "[]", "0", "null", ' "text" '])
def test_strict_json_of_any_kind_passes(text):
    assert judge(IsValidJsonValidator(), text).validation_successful


def test_nan_is_no_json():
    assert "NaN" in feedback(IsValidJsonValidator(), '{"a": NaN}')


@pytest.mark.parametrize("text", ['```json\n{"a": 1}\n```', "```\n[]\n```\n", '```json {"a": 1}'])
def test_a_code_fence_is_refused_with_feedback_that_says_so(text):
    assert "fence" in feedback(IsValidJsonValidator(), text)


def test_text_around_the_json_is_refused_with_the_place():
    assert "line 1, column 1" in feedback(IsValidJsonValidator(), 'Here you are: {"a": 1}')


def test_an_empty_answer_is_called_empty():
    assert "empty" in feedback(IsValidJsonValidator(), "  \n")


def test_without_a_stop_the_answer_passes():
    pad = ToolScratchpad()
    pad.record("other", 1)
    assert judge(StopExecutionValidator(), "anything", pad).validation_successful


@pytest.mark.parametrize("reason", ["the file is a cat picture", ""])
def test_a_stop_ends_without_a_retry_also_without_a_reason(reason):
    pad = ToolScratchpad()
    pad.record("stop_execution", reason)
    said = judge(StopExecutionValidator(), "anything", pad)
    assert (said.validation_successful, said.retry_needed, said.feedback) == (False, False, reason)


def test_an_answer_that_fits_the_model_passes_also_a_strict_one():
    assert judge(MatchesSchemaValidator(Invoice), '{"day": "2026-03-12", "lines": []}').validation_successful


def test_the_feedback_names_the_path_of_every_fault():
    said = feedback(MatchesSchemaValidator(Invoice), '{"lines": [{"name": "a"}, {"price": "much"}]}')
    assert "- day: Field required" in said
    assert "- lines.1.name: Field required" in said
    assert "- lines.1.price: " in said


def test_a_model_is_checked_only_after_the_json():
    assert "fence" in feedback(MatchesSchemaValidator(Invoice), '```\n{"day": "2026-03-12"}\n```')


def test_any_type_that_pydantic_describes_is_a_schema():
    assert judge(MatchesSchemaValidator(list[int]), "[1, 2]").validation_successful
    assert "- 1: " in feedback(MatchesSchemaValidator(list[int]), '[1, "x"]')
    assert "(whole answer)" in feedback(MatchesSchemaValidator(list[int]), "{}")


def test_a_json_schema_passes_and_names_paths_too():
    assert judge(
        MatchesSchemaValidator(SCHEMA), '{"day": "x", "lines": [{"price": 3}]}'
    ).validation_successful
    said = feedback(MatchesSchemaValidator(SCHEMA), '{"lines": [{"price": 1}, {"price": 11}]}')
    assert "- lines.1.price: 11 is greater than the maximum of 10" in said
    assert "(whole answer): 'day' is a required property" in said


def test_many_faults_are_listed_up_to_ten_and_counted():
    said = feedback(MatchesSchemaValidator(list[int]), str(["x"] * 30).replace("'", '"'))
    assert said.count("\n- ") == 11
    assert "and 20 more" in said


def test_a_wrong_json_schema_is_refused_when_it_is_written():
    with pytest.raises(ConfigurationError, match=r"\$\.properties\.a\.type"):
        MatchesSchemaValidator({"properties": {"a": {"type": "nonsense"}}})


def test_a_reference_out_of_the_schema_is_not_fetched():
    validator = MatchesSchemaValidator({"$ref": "https://example.invalid/schema.json"})
    with pytest.raises(Exception, match="Unresolvable"):
        judge(validator, "{}")


class Counting(BaseExecutionValidator):
    def __init__(self, limit: int = 0) -> None:
        self.limit = limit
        self.seen: list[str] = []

    def validate(
        self, response: str, execution_input: Any, tool_scratchpad: ToolScratchpad
    ) -> ValidatorResponse:
        self.seen.append(response)
        return ValidatorSuccessResponse()


@pytest.mark.parametrize(
    "entry",
    [Counting, Counting(3), lambda: Counting(3), partial(Counting, 3)],
    ids=["class", "instance", "factory", "partial"],
)
def test_each_validation_gets_a_fresh_validator_however_it_is_listed(entry):
    first = make_validator(entry)
    judge(first, "one")
    second = make_validator(entry)
    assert isinstance(second, Counting)
    assert second.seen == []
    assert second.limit == (0 if entry is Counting else 3)


def test_a_validator_is_called_by_its_class_in_messages():
    for entry in (Counting, Counting(1), partial(Counting, 1)):
        assert validator_name(entry) == "Counting"


def test_configured_validators_keep_their_schema_when_used_again(caplog):
    caplog.set_level(logging.WARNING)
    entry = MatchesSchemaValidator(Invoice)
    for _ in range(2):
        assert judge(make_validator(entry), '{"day": "2026-03-12"}').validation_successful
    assert not caplog.records

"""`run()`: attempts, validators, retries and endings, each as the specification says."""

import json
import logging
from typing import Any

import pytest
from pydantic import BaseModel

from agency.agent import ModelRefused
from agency.agent.testing import call
from agency.enums import Verdict
from agency.errors import ContextOverflow, ModelUnavailable, RunCancelled, RunReleased, StaleExecution
from agency.execution import (
    BaseAgenticExecutionDefinition,
    Conversation,
    ExecutionFailureCode,
    ExecutionResult,
    IsValidJsonValidator,
    StopExecutionValidator,
    ToolScratchpad,
    ValidatorResponse,
    ValidatorSuccessResponse,
)
from tests.unit.execution.definitions import (
    Ledger,
    Report,
    Topic,
    Verdicts,
    conversation,
    define,
    llm,
    rejects,
    sent,
    verdicts,
)

GIVE_UP = BaseAgenticExecutionDefinition.FAILURE_SUMMARY_PROMPT


def run(definition: Report, talk: Conversation) -> ExecutionResult:
    return definition.run(Topic(), talk)


def test_a_response_that_all_validators_accept_is_the_output():
    talk = conversation('{"mm": 3}')
    assert run(define(), talk) == ExecutionResult(True, {"mm": 3})
    assert talk.closed is not None
    assert (talk.closed.n, talk.closed.verdict, talk.closed.summary) == (1, Verdict.PASSED, '{"mm": 3}')


def test_without_validators_the_first_response_succeeds():
    assert run(define(VALIDATORS=[]), conversation("It rained.")).output == {"response": "It rained."}


def test_the_first_validator_that_refuses_decides_and_the_others_are_not_asked():
    late = verdicts(RuntimeError("asked all the same"))
    early = verdicts(ValidatorSuccessResponse()), verdicts(rejects("no", retry_needed=False))
    result = run(define(VALIDATORS=[*early, late]), conversation("x"))
    assert result.failure_summary == "no"


def test_validators_see_the_response_the_input_and_the_scratchpad():
    seen: list[tuple[Any, ...]] = []

    class Looks(Verdicts):
        def validate(
            self, response: str, execution_input: Any, tool_scratchpad: ToolScratchpad
        ) -> ValidatorResponse:
            seen.append((response, execution_input, tool_scratchpad))
            return ValidatorSuccessResponse()

    talk = conversation("hi")
    run(define(VALIDATORS=[Looks]), talk)
    assert seen == [("hi", Topic(), talk.scratchpad)]


def test_a_refusal_is_sent_back_and_the_next_attempt_can_succeed():
    ledger = Ledger()
    talk = conversation("It rained.", '{"mm": 3}', ledger=ledger)
    assert run(define(), talk).output == {"mm": 3}
    first, second = sent(talk)
    assert first == "Report on rain"
    assert "not valid JSON" in second
    (closed,) = ledger.closed
    assert (closed.n, closed.verdict, closed.feedback) == (1, Verdict.RETRY, second)
    assert closed.state["opening"] == "Report on rain"
    assert talk.closed is not None
    assert talk.closed.n == 2


def test_the_model_sees_the_first_message_on_every_retry():
    talk = conversation("no", "no", "no", "no", "I could not.")
    run(define(), talk)
    for request in llm(talk).requests:
        assert request.contents[0].content == "Report on rain"


def test_no_retry_stops_at_once_with_the_feedback_as_summary():
    ledger = Ledger()
    talk = conversation("x", ledger=ledger)
    result = run(define(VALIDATORS=[verdicts(rejects("It is in Greek.", retry_needed=False))]), talk)
    assert result == ExecutionResult(False, {}, "validation_failed", "It is in Greek.")
    assert ledger.closed == []
    assert talk.closed is not None
    assert (talk.closed.verdict, talk.closed.failure_code) == (Verdict.FAILED, "validation_failed")


def test_a_validators_own_failure_code_is_stored_as_it_is():
    class Codes(ExecutionFailureCode):
        GREEK = "in_greek"

    validator = verdicts(rejects("no", retry_needed=False, failure_code="in_greek"))
    assert (
        run(define(VALIDATORS=[validator], FAILURE_CODES=Codes), conversation("x")).failure_code == "in_greek"
    )


def test_a_code_that_failure_codes_lacks_is_stored_with_a_warning(caplog: pytest.LogCaptureFixture):
    validator = verdicts(rejects("no", retry_needed=False, failure_code="in_greek"))
    with caplog.at_level(logging.WARNING):
        assert run(define(VALIDATORS=[validator]), conversation("x")).failure_code == "in_greek"
    assert "in_greek" in caplog.text
    assert "ExecutionFailureCode" in caplog.text


def test_a_definition_may_rename_validation_failed():
    class Codes(ExecutionFailureCode):
        VALIDATION_FAILED = "refused"

    validator = verdicts(rejects("no", retry_needed=False))
    assert (
        run(define(VALIDATORS=[validator], FAILURE_CODES=Codes), conversation("x")).failure_code == "refused"
    )


@pytest.mark.parametrize("empty", ["", None, "  \n"])
def test_empty_feedback_becomes_a_generic_correction(empty: Any):
    talk = conversation("x", '"y"')
    run(define(VALIDATORS=[verdicts(rejects(empty))]), talk)
    assert "not accepted" in sent(talk)[1]


def test_without_a_retry_and_without_feedback_the_summary_names_the_validator():
    result = run(define(VALIDATORS=[verdicts(rejects("", retry_needed=False))]), conversation("x"))
    assert "ScriptedValidator" in (result.failure_summary or "")


def test_when_the_retries_are_used_up_the_model_sums_up_with_its_tools_off():
    ledger = Ledger()
    talk = conversation("a", "b", "c", "I could not find the data.", ledger=ledger)
    result = run(define(MAX_RETRIES=2), talk)
    assert result == ExecutionResult(False, {}, "max_retries_exceeded", "I could not find the data.")
    assert [request.tools != [] for request in llm(talk).requests] == [True, True, True, False]
    assert sent(talk)[-1].endswith(GIVE_UP)
    assert [(one.n, one.verdict) for one in ledger.closed] == [
        (1, Verdict.RETRY),
        (2, Verdict.RETRY),
        (3, Verdict.FAILED),
    ]
    assert talk.closed is None


def test_attempts_are_one_more_than_the_retries():
    talk = conversation(*"abcd", "summary")
    run(define(), talk)
    assert len(llm(talk).requests) == 1 + 3 + 1


def test_no_retries_means_one_attempt_and_then_the_summary():
    talk = conversation("a", "Too hard.")
    assert run(define(MAX_RETRIES=0), talk).failure_summary == "Too hard."
    assert len(llm(talk).requests) == 2


@pytest.mark.parametrize("fault", [ModelRefused("no"), ModelUnavailable("down"), "", " "])
def test_if_the_summary_fails_the_last_feedback_is_the_summary(fault: Any):
    talk = conversation("a", fault)
    result = run(define(MAX_RETRIES=0), talk)
    assert result.failure_code == "max_retries_exceeded"
    assert "not valid JSON" in (result.failure_summary or "")


def test_a_cancel_during_the_summary_is_not_swallowed():
    with pytest.raises(RunCancelled):
        run(define(MAX_RETRIES=0), conversation("a", RunCancelled("stop")))


def test_the_scratchpad_is_cleared_before_each_retry():
    pads: list[list[Any]] = []

    class Peeks(Verdicts):
        def validate(
            self, response: str, execution_input: Any, tool_scratchpad: ToolScratchpad
        ) -> ValidatorResponse:
            pads.append(tool_scratchpad.entries("seen"))
            return rejects("again") if len(pads) < 3 else ValidatorSuccessResponse()

    class Notes(Report):
        VALIDATORS = [Peeks]

        def execute(self, input_data: Topic, conversation: Conversation) -> str:
            conversation.scratchpad.record("seen", conversation.attempt)
            return conversation.ask("go")

    assert Notes().run(Topic(), conversation("a", "b", "c")).success
    assert pads == [[1], [2], [3]]


def test_a_stop_ends_the_turn_and_its_reason_is_the_failure_summary():
    talk = conversation(call("stop_execution", stop_reason="It is a cat picture."), "never asked")
    result = run(define(VALIDATORS=[StopExecutionValidator, IsValidJsonValidator]), talk)
    assert result == ExecutionResult(False, {}, "validation_failed", "It is a cat picture.")
    assert llm(talk).remaining == 1


def test_an_empty_reason_still_stops_and_the_summary_names_the_validator():
    talk = conversation(call("stop_execution", stop_reason=""))
    result = run(define(VALIDATORS=[StopExecutionValidator]), talk)
    assert not result.success
    assert "StopExecutionValidator" in (result.failure_summary or "")


def test_an_agent_that_runs_out_of_steps_ends_as_limit_reached():
    talk = conversation(call("nothing"), call("nothing"), max_steps=2)
    result = run(define(), talk)
    assert (result.success, result.failure_code) == (False, "limit_reached")
    assert talk.closed is not None
    assert talk.closed.failure_code == "limit_reached"


@pytest.mark.parametrize(
    ("fault", "code"),
    [(ContextOverflow("too long"), "context_overflow"), (ModelRefused("I will not"), "model_refused")],
)
def test_a_model_that_cannot_answer_ends_with_its_own_code(fault: Exception, code: str):
    result = run(define(), conversation(fault))
    assert (result.success, result.failure_code) == (False, code)


def test_a_model_that_is_unavailable_gives_the_run_back():
    with pytest.raises(RunReleased) as released:
        run(define(), conversation(ModelUnavailable("busy", retry_after=7)))
    assert released.value.delay == 7


def test_a_validator_that_raises_ends_with_runtime_error_naming_it_and_the_recorded_event():
    talk = conversation("x")
    result = run(define(VALIDATORS=[verdicts(KeyError("secret-token"))]), talk)
    assert result.failure_code == "runtime_error"
    summary = result.failure_summary or ""
    assert "validator ScriptedValidator" in summary
    assert "KeyError" in summary
    assert "secret-token" not in summary
    event = talk.context.events[-1]
    assert event.id in summary
    assert event.error is not None
    assert "secret-token" in event.error.message


@pytest.mark.parametrize("answer", [None, True])
def test_a_validator_that_returns_no_response_ends_with_runtime_error(answer: Any):
    result = run(define(VALIDATORS=[verdicts(answer)]), conversation("x"))
    assert result.failure_code == "runtime_error"
    assert "validator ScriptedValidator" in (result.failure_summary or "")


def test_a_validator_that_cannot_be_made_ends_with_runtime_error_naming_it():
    class NeedsMore(Verdicts):
        def __init__(self, limit: int) -> None: ...

    result = run(define(VALIDATORS=[NeedsMore]), conversation("x"))
    assert result.failure_code == "runtime_error"
    assert "NeedsMore" in (result.failure_summary or "")


@pytest.mark.parametrize("returned", [None, {"a": 1}, b"x"])
def test_execute_must_return_text(returned: Any):
    class Odd(Report):
        def execute(self, input_data: Topic, conversation: Conversation) -> Any:
            return returned

    result = Odd().run(Topic(), conversation())
    assert result.failure_code == "runtime_error"
    assert "return the answer as text" in (result.failure_summary or "")


def test_an_exception_in_execute_is_an_outcome_with_a_reference():
    class Broken(Report):
        def execute(self, input_data: Topic, conversation: Conversation) -> str:
            raise ZeroDivisionError("password=hunter2")

    talk = conversation()
    result = Broken().run(Topic(), talk)
    assert (result.success, result.failure_code) == (False, "runtime_error")
    assert "Broken.execute()" in (result.failure_summary or "")
    assert "hunter2" not in (result.failure_summary or "")
    assert talk.context.events[-1].id in (result.failure_summary or "")
    assert talk.closed is not None
    assert talk.closed.verdict == Verdict.FAILED


@pytest.mark.parametrize("signal", [RunCancelled("stop"), RunReleased("later"), StaleExecution("lost")])
def test_signals_and_a_lost_claim_leave_the_run(signal: BaseException):
    class Signals(Report):
        def execute(self, input_data: Topic, conversation: Conversation) -> str:
            raise signal

    with pytest.raises(type(signal)):
        Signals().run(Topic(), conversation())


class Rain(BaseModel):
    mm: float
    place: str = "Kiel"


def test_the_output_type_is_a_validator_after_all_others_and_shapes_the_output():
    talk = conversation('{"mm": "much"}', '{"mm": "3"}')
    assert run(define(OUTPUT_TYPE=Rain, VALIDATORS=[]), talk).output == {"mm": 3.0, "place": "Kiel"}
    assert "- mm: " in sent(talk)[1]


def test_an_output_type_that_is_no_object_is_stored_as_a_value():
    assert run(define(OUTPUT_TYPE=list[int]), conversation("[1, 2]")).output == {"value": [1, 2]}


def test_a_run_that_starts_again_goes_on_in_its_attempt_with_the_feedback():
    ledger = Ledger()
    talk = conversation(
        '{"mm": 1}', attempt=2, feedback="Say JSON.", previous_opening="Report on rain", ledger=ledger
    )
    assert run(define(), talk).success
    assert sent(talk) == ["Say JSON."]
    assert ledger.closed == []
    assert talk.closed is not None
    assert talk.closed.n == 2


def test_the_summary_of_a_long_answer_is_masked_before_it_is_cut():
    answer = json.dumps({"mm": 1, "session_token": "swordfish", "note": "x" * 3_000})
    talk = conversation(answer)
    assert run(define(), talk).success
    assert talk.closed is not None
    assert "swordfish" not in talk.closed.summary
    assert '"session_token": "[redacted]"' in talk.closed.summary


def test_a_run_that_starts_again_after_the_last_attempt_only_sums_up():
    talk = conversation("I could not.", attempt=4, feedback="Say JSON.")
    result = run(define(MAX_RETRIES=2), talk)
    assert result == ExecutionResult(False, {}, "max_retries_exceeded", "I could not.")
    assert sent(talk) == [f"Say JSON.\n\n{GIVE_UP}"]
    assert talk.closed is None


def test_a_run_that_starts_again_after_the_last_attempt_falls_back_to_the_feedback_it_was_given():
    talk = conversation(ModelRefused("no"), attempt=4, feedback="Say JSON.")
    assert run(define(MAX_RETRIES=2), talk).failure_summary == "Say JSON."


def test_an_attempt_is_in_the_ledger_before_the_next_one_begins():
    order: list[str] = []

    class Tells(Ledger):
        def close_attempt(self, closed: Any) -> None:
            order.append(f"closed {closed.n}")

    class Counts(Report):
        def execute(self, input_data: Topic, conversation: Conversation) -> str:
            order.append(f"execute {conversation.attempt}")
            return conversation.ask("go")

    Counts().run(Topic(), conversation("x", '"y"', ledger=Tells()))
    assert order == ["execute 1", "closed 1", "execute 2"]


def test_a_definition_without_execute_cannot_be_made():
    class Unfinished(BaseAgenticExecutionDefinition):
        EXECUTION_KEY = "unfinished"

    with pytest.raises(TypeError, match="execute"):
        Unfinished()


def test_the_class_variables_have_the_promised_defaults():
    definition = BaseAgenticExecutionDefinition
    assert list(definition.VALIDATORS) == [IsValidJsonValidator]
    assert (definition.MAX_RETRIES, definition.DESCRIPTION, definition.SYSTEM_PROMPT) == (3, None, None)
    assert (definition.TOOLS, definition.OUTPUT_TYPE, definition.LIMITS) == (None, None, None)
    assert definition.FAILURE_CODES is ExecutionFailureCode

"""What no database takes, from definition, model or provider, still ends or pauses a run in a true state."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agency.errors import RunReleased
from agency.execution import (
    BaseAgenticExecutionDefinition,
    BaseExecutionValidator,
    Conversation,
    ExecutionResult,
    ValidatorFailureResponse,
    ValidatorResponse,
    registry,
    service,
)
from agency.models import ConfiguredAgent, Execution
from agency.models.clock import database_now
from agency.runtime.body import Outcome, run_claimed
from agency.runtime.claim import claim

pytestmark = pytest.mark.django_db
NO_TEXT: dict[str, Any] = {"success": False, "failure_summary": 7}


class Refuses(BaseExecutionValidator):
    def validate(self, response: str, execution_input: Any, tool_scratchpad: Any) -> ValidatorResponse:
        return ValidatorFailureResponse("No.", retry_needed=False, failure_code="c" * 500)


class OwnRun(BaseAgenticExecutionDefinition):
    """Its `run()` is not ours."""

    EXECUTION_KEY = "own-run"
    AGENT_KEY = "fault-clerk"
    NAME = "Own run"

    def execute(self, input_data: Any, conversation: Conversation) -> str:
        return "{}"

    def run(self, input_data: Any, conversation: Conversation) -> Any:
        return self.given()

    @staticmethod
    def given() -> Any:
        return None


class Answer(BaseAgenticExecutionDefinition):
    EXECUTION_KEY = "answer"
    AGENT_KEY = "fault-clerk"
    NAME = "Answer"
    VALIDATORS = []

    def execute(self, input_data: Any, conversation: Conversation) -> str:
        return self.given()

    @staticmethod
    def given() -> Any:
        return ""


class LongCode(Answer):
    EXECUTION_KEY = "long-code"
    NAME = "Long code"
    VALIDATORS = [Refuses]


@pytest.fixture
def run(clerk: ConfiguredAgent, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Execution]]:
    """`run(Definition, give)`: the row after one claim of an execution that gives what `give` makes."""

    def once(definition: Any, give: Callable[[], Any]) -> Execution:
        monkeypatch.setattr(definition, "given", staticmethod(give))
        execution = service.submit(definition, clerk, {}).execution
        claimed = claim(execution.pk)
        assert claimed is not None
        assert run_claimed(claimed) in {Outcome.FINISHED, Outcome.FAILED, Outcome.RELEASED}
        execution.refresh_from_db()
        return execution

    with registry.isolated():
        registry.register(OwnRun, Answer, LongCode)
        yield once


@pytest.mark.parametrize(
    ("give", "said"),
    [
        (lambda: None, "run() gave NoneType; return an ExecutionResult"),
        (lambda: ExecutionResult(True, {"when": object()}), "The result could not be stored: TypeError."),
        (lambda: ExecutionResult(**NO_TEXT), "The result could not be stored: TypeError."),
    ],
    ids=["nothing", "no JSON", "a summary that is no text"],
)
def test_a_result_that_cannot_be_stored_fails_the_run_at_its_first_claim(
    run: Callable[..., Execution], give: Callable[[], Any], said: str
) -> None:
    execution = run(OwnRun, give)
    assert (execution.status, execution.failure_code) == ("failed", "runtime_error")
    assert said in execution.failure_summary


def test_a_code_that_is_too_long_fails_the_run_and_names_the_validator(
    run: Callable[..., Execution],
) -> None:
    execution = run(LongCode, lambda: "{}")
    assert execution.failure_code == "runtime_error"
    assert "Refuses" in execution.failure_summary
    assert "500 characters" in execution.failure_summary


@pytest.mark.parametrize("depth", [101, 350, 450, 5_000])
def test_an_answer_nested_too_deeply_is_kept_as_text(run: Callable[..., Execution], depth: int) -> None:
    text = '{"a":' * depth + "1" + "}" * depth
    execution = run(Answer, lambda: text)
    assert execution.status == "finished"
    assert execution.output == {"response": text}


@pytest.mark.parametrize("asked", [float("inf"), 1e12, 1e300], ids=["for ever", "ages", "no year"])
def test_a_pause_that_no_clock_can_hold_is_a_day_at_most(run: Callable[..., Execution], asked: float) -> None:
    def wait() -> str:
        raise RunReleased("the provider said so", delay=asked)

    execution = run(Answer, wait)
    assert execution.next_run_at is not None
    assert 86_000 < (execution.next_run_at - database_now()).total_seconds() < 90_000

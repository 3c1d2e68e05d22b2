"""A judge is asked within the run: its model may be away, its verdicts count and are kept."""

from collections.abc import Callable
from typing import Any

import pytest

from agency.agent import ModelUnavailable
from agency.agent.testing import ScriptedLlm
from agency.execution import JudgeValidator, registry, service
from agency.models import ConfiguredAgent, Event, Execution, Message
from agency.runtime import body
from agency.runtime.claim import claim
from agency.testing import run_until_parked
from tests.faults.app.executions import Errand

pytestmark = pytest.mark.django_db
PASSED, REFUSED = '{"passed": true, "feedback": ""}', '{"passed": false, "feedback": "Say more."}'

Judged = Callable[..., Execution]


@pytest.fixture
def judged(clerk: ConfiguredAgent, bill: Any) -> Judged:
    """`judged(model)`: an execution whose answers `model` judges, due now."""

    def submit(model: ScriptedLlm | str) -> Execution:
        judge = JudgeValidator(model, "It is good.")
        attributes = {"EXECUTION_KEY": "judged", "NAME": "Judged", "VALIDATORS": [judge]}
        registry.register(type("JudgedErrand", (Errand,), attributes))
        return service.submit("judged", clerk, {"task": '{"a": 1} | {"a": 2}', "word": "x"}).execution

    return submit


def test_a_judge_that_is_away_puts_the_run_off_and_costs_no_attempt(judged: Judged) -> None:
    judge = ScriptedLlm(ModelUnavailable("busy", retry_after=30), PASSED)
    execution = judged(judge)
    first = claim(execution.pk)
    assert first is not None
    assert body.run_claimed(first) == body.Outcome.RELEASED
    execution.refresh_from_db()
    assert (execution.status, execution.iteration) == ("in_progress", 0)
    assert execution.next_run_at is not None

    execution = run_until_parked(execution)
    assert (execution.status, execution.iteration) == ("finished", 1)
    assert judge.remaining == 0


def test_a_judge_that_stays_away_fails_the_run_and_is_named(judged: Judged, settings: Any) -> None:
    settings.AGENCY = {**getattr(settings, "AGENCY", {}), "MODEL_RETRIES": 2}
    execution = run_until_parked(judged(ScriptedLlm(ModelUnavailable("busy"), loop=True)))
    assert execution.status == "failed"
    assert "JudgeValidator" in (execution.failure_summary or "")


def test_verdicts_count_and_are_kept_out_of_the_thread(judged: Judged) -> None:
    execution = run_until_parked(judged(ScriptedLlm(REFUSED, PASSED)))
    assert execution.status == "finished"
    assert execution.usage["model_calls"] == 4
    told = Event.objects.filter(execution=execution, call__beside="JudgeValidator")
    assert [row.content[0]["content"] for row in told.order_by("seq")] == [REFUSED, PASSED]
    assert not Message.objects.filter(thread=execution.thread, content__contains="passed").exists()


def test_a_judge_that_is_named_is_the_one_that_a_test_or_project_gives(
    judged: Judged, scripted_llm: Any
) -> None:
    script = scripted_llm('{"a": 1}', PASSED)
    assert run_until_parked(judged("openai:gpt-5-mini")).status == "finished"
    assert script.remaining == 0

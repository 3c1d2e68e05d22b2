"""A claimed execution is run, recorded and ended."""

from collections import Counter
from collections.abc import Callable

import pytest

from agency.enums import EventKind
from agency.execution.signals import execution_finished
from agency.models import Execution, Message
from agency.testing import run_until_parked
from tests.integration.runtime.conftest import Submit

pytestmark = pytest.mark.django_db


def kinds(execution: Execution) -> list[str]:
    return list(execution.events.exclude(kind=EventKind.CONTENT.value).values_list("kind", flat=True))


def test_an_execution_that_passes_is_finished_with_its_output(submit: Submit) -> None:
    execution = run_until_parked(submit('jot x; {"a": "done"}'))

    assert execution.status == "finished"
    assert execution.output == {"a": "done"}
    assert execution.claim_id is None
    assert execution.started_at is not None
    assert execution.usage["model_calls"] == 2
    assert kinds(execution) == ["execution_started", "execution_attempt_completed", "execution_finished"]


def test_the_log_is_gapless_and_the_thread_reads_like_a_conversation(submit: Submit) -> None:
    execution = run_until_parked(submit('jot x; {"a": "done"}'))

    assert list(execution.events.values_list("seq", flat=True)) == list(range(1, execution.event_seq + 1))
    said = Message.objects.filter(thread=execution.thread).values_list("role", "content")
    assert list(said) == [
        ("user", 'jot x; {"a": "done"}'),
        ("assistant", '→ jot({"text": "x"})'),
        ("tool", "← jot: noted x"),
        ("assistant", '{"a": "done"}'),
    ]


def test_a_retry_is_told_the_feedback_and_the_ledger_holds_each_attempt(
    submit: Submit, bill: Callable[[], Counter[str]]
) -> None:
    execution = run_until_parked(submit('jot x; {"a": 1} | jot y; {"b": "done"}'))

    assert execution.status == "finished"
    assert execution.iteration == 2
    rows = list(execution.iterations.order_by("n").values_list("n", "verdict", "feedback"))
    assert rows == [(1, "retry", "Say 'done'. You jotted: x."), (2, "passed", None)]
    asked = [row.content[0]["content"] for row in execution.events.filter(author="user")]
    assert asked[1] == "Say 'done'. You jotted: x."
    assert set(bill().values()) == {1}


def test_an_execution_without_a_good_attempt_fails_with_a_summary(submit: Submit) -> None:
    execution = run_until_parked(submit('{"a": 1} | {"a": 2} | {"a": 3}'))

    assert (execution.status, execution.failure_code) == ("failed", "max_retries_exceeded")
    assert execution.failure_summary == "I gave up."
    assert list(execution.iterations.order_by("n").values_list("verdict", flat=True)) == [
        "retry",
        "retry",
        "failed",
    ]
    assert kinds(execution)[-1] == "execution_failed"


def test_the_summary_of_a_failure_is_part_of_what_the_execution_cost(submit: Submit) -> None:
    execution = run_until_parked(submit('{"a": 1} | {"a": 2} | {"a": 3}'))

    told = [row.usage for row in execution.events.filter(usage__isnull=False)]
    assert execution.usage["model_calls"] == 4
    assert execution.usage["input_tokens"] == sum(usage["input_tokens"] for usage in told)


def test_listeners_hear_of_the_end_and_a_failing_one_harms_nobody(
    submit: Submit, django_capture_on_commit_callbacks: Callable[..., object]
) -> None:
    heard: list[str] = []

    def fails(**_: object) -> None:
        raise RuntimeError("a listener's own fault")

    def listens(execution: Execution, **_: object) -> None:
        heard.append(execution.status)

    execution_finished.connect(fails)
    execution_finished.connect(listens)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            run_until_parked(submit())
    finally:
        execution_finished.disconnect(fails)
        execution_finished.disconnect(listens)
    assert heard == ["finished"]

"""What a claim writes: attempts, endings and releases, each of them once."""

import pytest
from django.db import OperationalError

from agency.agent import Usage
from agency.enums import ExecutionStatus, Verdict
from agency.errors import RunCancelled, StaleExecution
from agency.execution import service, store
from agency.execution.claims import settled
from agency.execution.conversation import ClosedAttempt
from agency.execution.failure import ExecutionResult
from agency.models import Execution
from agency.models.clock import Now
from agency.runtime.claim import claim
from tests.integration.rows import an_ask
from tests.integration.runtime.conftest import Submit

pytestmark = pytest.mark.django_db
DONE = ExecutionResult(success=True, output={"a": 1})


def attempt(n: int, verdict: Verdict = Verdict.RETRY, **values: object) -> ClosedAttempt:
    return ClosedAttempt(n, verdict, "what was said", usage=Usage(model_calls=1, input_tokens=7), **values)


def test_an_attempt_is_committed_and_the_claim_is_kept(submit: Submit) -> None:
    execution = submit()
    got = claim()
    store.commit_attempt(got, attempt(1, feedback="Better.", state={"opening": "x"}))
    store.commit_attempt(got, attempt(2, feedback="Better still."))
    execution.refresh_from_db()
    assert got.iteration == 3
    assert (execution.iteration, execution.claim_count, execution.claim_id) == (2, 0, got.claim_id)
    assert execution.usage["input_tokens"] == 14
    first, second = execution.iterations.order_by("n")
    assert (first.feedback, first.state, first.claim_id) == ("Better.", {"opening": "x"}, got.claim_id)
    assert second.started_at == first.finished_at
    assert first.started_at == execution.started_at


@pytest.mark.parametrize(
    ("first", "second", "total"), [(None, None, None), (0.1, None, 0.1), (None, 0.2, 0.2), (0.25, 0.5, 0.75)]
)
def test_what_attempts_spent_is_added_up_and_an_unknown_price_is_not_nothing(
    first: float | None, second: float | None, total: float | None, submit: Submit
) -> None:
    execution = submit()
    got = claim()
    for n, cost in enumerate((first, second), 1):
        spent = Usage(
            model_calls=1, tool_calls=2, input_tokens=3, output_tokens=4, cached_tokens=5, cost=cost
        )
        store.commit_attempt(got, ClosedAttempt(n, Verdict.RETRY, "so it was", usage=spent))
    execution.refresh_from_db()
    expected = Usage(
        model_calls=2, tool_calls=4, input_tokens=6, output_tokens=8, cached_tokens=10, cost=total
    )
    assert execution.usage == expected.model_dump(mode="json")


def test_an_attempt_that_ends_its_execution_is_added_to_what_was_spent(submit: Submit) -> None:
    execution = submit()
    got = claim()
    store.commit_attempt(got, attempt(1))
    store.finish(got, DONE, attempt(2, Verdict.PASSED))
    execution.refresh_from_db()
    assert (execution.iteration, execution.usage["input_tokens"]) == (2, 14)
    events = list(execution.events.order_by("seq").values_list("seq", "kind"))
    assert [seq for seq, _ in events] == [1, 2, 3, 4]
    assert [kind for _, kind in events[1:]] == [
        "execution_attempt_completed",
        "execution_attempt_completed",
        "execution_finished",
    ]


def test_an_attempt_out_of_order_is_refused(submit: Submit) -> None:
    submit()
    got = claim()
    with pytest.raises(StaleExecution):
        store.commit_attempt(got, attempt(2))


def test_an_execution_cannot_end_twice(submit: Submit) -> None:
    execution = submit()
    got = claim()
    assert store.finish(got, DONE, attempt(1, Verdict.PASSED)) is ExecutionStatus.FINISHED
    with pytest.raises(StaleExecution):
        store.finish(got, ExecutionResult(success=False, failure_code="unknown"), attempt(1))
    execution.refresh_from_db()
    assert (execution.status, execution.output) == ("finished", {"a": 1})
    assert execution.events.filter(kind__startswith="execution_f").count() == 1
    assert execution.iterations.get().verdict == "passed"


def test_a_failure_without_a_code_is_unknown(submit: Submit) -> None:
    execution = submit()
    store.finish(claim(), ExecutionResult(success=False))
    execution.refresh_from_db()
    assert (execution.status, execution.failure_code) == ("failed", "unknown")


def test_a_cancel_that_comes_before_the_commit_wins_over_the_result(submit: Submit) -> None:
    execution = submit()
    got = claim()
    assert service.request_cancel(execution) is ExecutionStatus.IN_PROGRESS
    assert store.finish(got, DONE, attempt(1, Verdict.PASSED)) is ExecutionStatus.CANCELLED
    execution.refresh_from_db()
    assert (execution.status, execution.output) == ("cancelled", None)
    assert execution.iterations.get().verdict == "cancelled"
    assert execution.events.last().kind == "execution_cancelled"


def test_a_cancel_stops_the_next_attempt(submit: Submit) -> None:
    execution = submit()
    got = claim()
    service.request_cancel(execution)
    with pytest.raises(RunCancelled):
        store.commit_attempt(got, attempt(1))
    assert store.cancel_claimed(got, attempt(1)) is True
    execution.refresh_from_db()
    assert execution.status == "cancelled"


def test_a_cancel_of_a_queued_execution_ends_it_at_once(submit: Submit) -> None:
    execution = submit()
    assert service.request_cancel(execution) is ExecutionStatus.CANCELLED
    assert claim(execution.pk) is None


def test_a_released_claim_is_due_again_and_does_not_count(submit: Submit) -> None:
    execution = submit()
    store.release(claim(), delay=30, metadata={"why": "busy"})
    execution.refresh_from_db()
    assert (execution.status, execution.claim_count, execution.claim_id) == ("in_progress", 0, None)
    assert execution.metadata == {"why": "busy"}
    assert Execution.objects.filter(next_run_at__gt=Now(28), next_run_at__lte=Now(30)).exists()


def test_a_parked_execution_waits_without_a_claim(submit: Submit) -> None:
    execution = submit()
    assert store.park(claim(), an_ask("pay"), 60.0)
    execution.refresh_from_db()
    assert (execution.status, execution.claim_id, execution.next_run_at) == ("interrupted", None, None)
    request = execution.human_requests.get()
    assert execution.events.last().data == {
        "request": str(request.pk),
        "kind": "confirm_tool",
        "message": "Clerk wants to call pay(amount=5).",
    }


def test_secrets_and_unwritable_characters_never_reach_a_row(submit: Submit) -> None:
    execution = submit()
    secret = "sk-live-abcdefghijklmnop1234"
    summary = f"the key {secret} was\x00 refused \ud800"
    closed = attempt(
        1, Verdict.FAILED, feedback=summary, state={"context_state": {"api_key": "hunter2 hunter2"}}
    )
    store.finish(claim(), ExecutionResult(False, {"key": secret}, "unknown", summary), closed)
    execution.refresh_from_db()
    row = execution.iterations.get()
    written = f"{execution.failure_summary} {execution.output} {row.feedback} {row.state} {row.summary}"
    written += str(list(execution.events.values_list("data", flat=True)))
    assert secret not in written
    assert "hunter2" not in written
    assert "\x00" not in written
    assert "was refused" in execution.failure_summary


@pytest.mark.django_db(transaction=True)
class TestCommitOfUnknownOutcome:
    """The connection dies at COMMIT: what is in the database decides."""

    def test_a_write_that_had_arrived_is_not_written_again(self, submit: Submit) -> None:
        execution = submit()
        calls: list[int] = []

        def write() -> str:
            calls.append(1)
            raise OperationalError("connection lost while waiting for the COMMIT")

        def find() -> str | None:
            return "found" if Execution.objects.filter(pk=execution.pk).exists() else None

        assert settled(write, find) == "found"
        assert calls == [1]

    def test_a_write_that_had_not_arrived_is_written_again(self, submit: Submit) -> None:
        submit()
        calls: list[int] = []

        def write() -> str:
            calls.append(1)
            if len(calls) == 1:
                raise OperationalError("server closed the connection")
            return "written"

        assert settled(write, lambda: None) == "written"
        assert calls == [1, 1]

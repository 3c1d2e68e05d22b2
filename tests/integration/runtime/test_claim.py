"""A row has one claimer, and a claim has one meaning."""

import threading
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, connections

from agency.errors import StaleExecution
from agency.execution import record, service, store
from agency.execution.failure import ExecutionResult
from agency.models import ConfiguredAgent, Execution
from agency.models.clock import Now, database_now
from agency.runtime.claim import claim
from tests.integration.rows import an_ask
from tests.integration.runtime.conftest import Submit

DONE = ExecutionResult(success=True, output={"a": 1})


def expire(execution: Execution) -> None:
    Execution.objects.filter(pk=execution.pk).update(lease_until=Now(-1))


def in_threads(count: int, work: Callable[[], None]) -> None:
    def body() -> None:
        try:
            work()
        finally:
            connections.close_all()

    threads = [threading.Thread(target=body) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.django_db(transaction=True)
def test_many_claimers_never_get_the_same_row(submit: Submit) -> None:
    expected = {str(submit().pk) for _ in range(24)}
    taken: list[str] = []

    def claim_all() -> None:
        while (got := claim()) is not None:
            taken.append(got.execution_id)

    in_threads(6, claim_all)
    assert sorted(taken) == sorted(expected)


@pytest.mark.django_db(transaction=True)
def test_one_of_many_doubled_wake_ups_gets_the_row(submit: Submit) -> None:
    execution = submit()
    got: list[object] = []
    in_threads(6, lambda: got.append(claim(execution.pk, 1)))
    assert len([one for one in got if one is not None]) == 1
    execution.refresh_from_db()
    assert (execution.fence, execution.claim_count) == (1, 1)


@pytest.mark.django_db
class TestOneRow:
    def test_a_row_that_contradicts_itself_is_told_and_not_taken_for_a_lost_seat(
        self, submit: Submit
    ) -> None:
        execution, other = submit(), submit()
        Execution.objects.filter(pk=other.pk).update(claim_count=1)
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            table = Execution._meta.db_table
            cursor.execute(f"CREATE UNIQUE INDEX no_two_with_one_claim_count ON {table} (claim_count)")
        with pytest.raises(IntegrityError, match="claim_count"):
            claim(execution.pk)
        execution.refresh_from_db()
        assert (execution.claim_id, execution.event_seq) == (None, 0)

    def test_a_claim_brings_the_row_into_progress_and_says_so_once(self, submit: Submit) -> None:
        execution = submit()
        got = claim()
        assert got is not None
        execution.refresh_from_db()
        assert (got.execution_id, got.iteration, got.fence) == (str(execution.pk), 1, 1)
        assert (execution.status, execution.next_run_at) == ("in_progress", None)
        assert execution.claim_id == got.claim_id
        lease = execution.lease_until - database_now()
        assert timedelta(seconds=58) < lease <= timedelta(seconds=60)
        assert list(execution.events.values_list("seq", "kind")) == [(1, "execution_started")]

    def test_the_oldest_due_row_is_first(self, submit: Submit) -> None:
        late, early = submit(), submit()
        Execution.objects.filter(pk=early.pk).update(next_run_at=Now(-60))
        got = claim()
        assert got is not None
        assert got.execution_id == str(early.pk)
        assert str(late.pk) != got.execution_id

    def test_a_row_that_is_not_due_yet_is_left_alone(self, submit: Submit) -> None:
        execution = submit()
        Execution.objects.filter(pk=execution.pk).update(next_run_at=Now(30))
        assert claim() is None
        assert claim(execution.pk) is None
        assert claim(execution.pk, ignore_due=True) is not None

    def test_an_outdated_wake_up_finds_nothing(self, submit: Submit) -> None:
        assert claim(submit().pk, expected_iteration=2) is None

    def test_a_wake_up_for_a_row_that_does_not_exist_finds_nothing(self, submit: Submit) -> None:
        assert claim(uuid.uuid4(), 1) is None

    def test_a_live_lease_is_not_taken(self, submit: Submit) -> None:
        execution = submit()
        claim()
        assert claim(execution.pk) is None

    def test_an_expired_lease_is_claimed_with_a_new_fence_and_the_late_owner_is_refused(
        self, submit: Submit
    ) -> None:
        execution = submit()
        first = claim()
        expire(execution)
        second = claim(execution.pk)
        assert first is not None
        assert second is not None
        assert (second.fence, second.claim_id != first.claim_id) == (2, True)
        before = Execution.objects.values().get(pk=execution.pk)
        for late in (
            lambda: store.finish(first, DONE),
            lambda: record.record(first, record.Entry("1:x", result=1)),
            lambda: store.release(first),
            lambda: store.park(first, an_ask(), 60.0),
        ):
            with pytest.raises(StaleExecution):
                late()
        assert Execution.objects.values().get(pk=execution.pk) == before
        assert not execution.steps.exists()
        assert list(execution.events.values_list("kind", flat=True)) == [
            "execution_started",
            "execution_resumed",
        ]

    def test_a_row_at_the_cap_is_not_claimed_again(self, submit: Submit, settings: Any) -> None:
        settings.AGENCY = {"CLAIM_CAP": 2}
        execution = submit()
        for _ in range(2):
            assert claim(execution.pk) is not None
            expire(execution)
        assert claim(execution.pk) is None
        execution.refresh_from_db()
        assert execution.claim_count == 2

    def test_a_row_with_a_cancel_or_a_passed_deadline_is_not_claimed(
        self, submit: Submit, clerk: ConfiguredAgent
    ) -> None:
        cancelled, late = submit(), submit()
        Execution.objects.filter(pk=cancelled.pk).update(cancel_requested_at=Now())
        Execution.objects.filter(pk=late.pk).update(deadline_at=Now(-1))
        assert claim() is None
        assert claim(cancelled.pk) is None
        assert claim(late.pk) is None

    def test_the_deadline_runs_from_the_first_claim(self, submit: Submit, settings: Any) -> None:
        settings.AGENCY = {"DEADLINE_SECONDS": 100}
        execution = submit()
        claim()
        execution.refresh_from_db()
        first = execution.deadline_at
        assert timedelta(seconds=98) < first - database_now() <= timedelta(seconds=100)
        expire(execution)
        claim(execution.pk)
        execution.refresh_from_db()
        assert execution.deadline_at == first


@pytest.mark.django_db
def test_a_batch_is_run_in_the_order_in_which_it_was_given(clerk: ConfiguredAgent) -> None:
    inputs = [{"task": str(n), "word": "done"} for n in range(20)]
    given = [one.execution.pk for one in service.submit_batch("fault-errand", clerk, inputs)]

    taken = [claim() for _ in given]

    assert [one.execution_id for one in taken if one is not None] == [str(pk) for pk in given]

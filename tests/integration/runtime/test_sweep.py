"""What died is put right, whatever else is in the table."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import DatabaseError, connection

from agency.execution import service, store
from agency.execution.signals import execution_finished
from agency.models import Execution
from agency.models.clock import Now
from agency.runtime import sweep
from agency.runtime.beat import beat
from agency.runtime.claim import claim
from agency.testing import run_until_parked
from tests.integration.rows import an_ask
from tests.integration.runtime.conftest import Submit

pytestmark = pytest.mark.django_db


def test_an_expired_lease_makes_the_row_due_and_stays_counted(submit: Submit) -> None:
    execution = submit()
    claim(execution.pk)
    Execution.objects.filter(pk=execution.pk).update(lease_until=Now(-1))
    sweep.recover()
    execution.refresh_from_db()
    assert (execution.status, execution.claim_id, execution.claim_count) == ("in_progress", None, 1)
    assert execution.next_run_at is not None


@pytest.mark.django_db(transaction=True)
def test_the_claim_of_a_living_owner_is_left_alone_even_when_it_missed_beats(submit: Submit) -> None:
    execution = submit()
    with beat().watching(claim(execution.pk)):
        Execution.objects.filter(pk=execution.pk).update(lease_until=Now(30))
        sweep.recover()
        execution.refresh_from_db()
        assert execution.claim_id is not None


def test_a_claim_of_this_process_that_none_of_its_runs_holds_is_given_up(submit: Submit) -> None:
    """Its COMMIT was never answered, or no thread could be started for it."""
    execution = submit()
    claim(execution.pk)
    sweep.recover()
    execution.refresh_from_db()
    assert execution.claim_id is not None
    Execution.objects.filter(pk=execution.pk).update(lease_until=Now(58.4))
    sweep.recover()
    execution.refresh_from_db()
    assert (execution.claim_id, execution.claim_count) == (None, 1)


def test_the_claim_of_a_dead_owner_is_taken_before_its_lease_ends(submit: Submit) -> None:
    execution = submit()
    got = claim(execution.pk)
    machine, _, _, random, *_ = got.owner.split("|")
    gone = f"{machine}|{2**22 + 1}|1|{random}"
    Execution.objects.filter(pk=execution.pk).update(claim_owner=gone, lease_until=Now(58.4))
    sweep.recover()
    execution.refresh_from_db()
    assert execution.claim_id is None


def test_an_owner_on_another_machine_is_only_judged_by_its_lease(submit: Submit) -> None:
    execution = submit()
    claim(execution.pk)
    Execution.objects.filter(pk=execution.pk).update(
        claim_owner="another machine|4194305|1|ab", lease_until=Now(30)
    )
    sweep.recover()
    execution.refresh_from_db()
    assert execution.claim_id is not None


def test_a_cancel_that_its_runner_never_saw_is_carried_out(submit: Submit) -> None:
    execution = submit()
    claim(execution.pk)
    service.request_cancel(execution)
    Execution.objects.filter(pk=execution.pk).update(lease_until=Now(-1))
    sweep.close()
    execution.refresh_from_db()
    assert execution.status == "cancelled"
    assert execution.events.last().kind == "execution_cancelled"


def test_a_cancel_of_a_running_execution_is_left_to_its_runner(submit: Submit) -> None:
    execution = submit()
    claim(execution.pk)
    service.request_cancel(execution)
    sweep.close()
    execution.refresh_from_db()
    assert execution.status == "in_progress"


def test_a_row_whose_deadline_passed_while_nobody_ran_it_fails(submit: Submit) -> None:
    execution = submit()
    Execution.objects.filter(pk=execution.pk).update(deadline_at=Now(-1))
    sweep.close()
    execution.refresh_from_db()
    assert (execution.status, execution.failure_code) == ("failed", "deadline_exceeded")


def test_one_row_that_cannot_be_put_right_does_not_stop_the_others(submit: Submit) -> None:
    poisoned, *others = sorted((submit() for _ in range(3)), key=lambda row: row.created_at)
    Execution.objects.update(deadline_at=Now(-1))
    poison = poisoned.pk.hex if connection.vendor == "sqlite" else str(poisoned.pk)

    def fails(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("UPDATE") and poison in str(params).replace("UUID", ""):
            raise DatabaseError("this row is broken")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(fails):
        sweep.close()
    poisoned.refresh_from_db()
    assert poisoned.status == "pending"
    assert Counter(Execution.objects.values_list("status", flat=True)) == {"pending": 1, "failed": 2}
    assert len(others) == 2


def test_a_second_sweep_changes_nothing(submit: Submit) -> None:
    execution = submit()
    Execution.objects.filter(pk=execution.pk).update(deadline_at=Now(-1))
    sweep.close()
    sweep.close()
    execution.refresh_from_db()
    assert execution.events.count() == 1


def test_a_row_that_waits_for_a_person_is_neither_late_nor_a_crash_loop(
    submit: Submit, settings: Any
) -> None:
    settings.AGENCY = {"CLAIM_CAP": 2}
    execution = submit()
    claim(execution.pk)
    Execution.objects.filter(pk=execution.pk).update(lease_until=Now(-1))
    got = claim(execution.pk)
    assert got is not None
    store.park(got, an_ask(), 60.0)
    Execution.objects.filter(pk=execution.pk).update(deadline_at=Now(-1))
    sweep.close()
    execution.refresh_from_db()
    assert (execution.status, execution.claim_count) == ("interrupted", 1)


def test_a_cancel_of_a_row_that_waits_for_a_person_is_carried_out(submit: Submit) -> None:
    execution = submit()
    got = claim(execution.pk)
    assert got is not None
    store.park(got, an_ask(), 60.0)
    Execution.objects.filter(pk=execution.pk).update(cancel_requested_at=Now())
    sweep.close()
    execution.refresh_from_db()
    assert execution.status == "cancelled"
    assert execution.human_requests.get().status == "cancelled"


def test_many_silent_claims_that_nobody_here_can_judge_do_not_hide_a_dead_one(
    submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "BATCH", 2)
    foreign, dead = [submit() for _ in range(4)], submit()
    for execution in [*foreign, dead]:
        got = claim(execution.pk)
    assert got is not None
    machine, _, _, random, *_ = got.owner.split("|")
    Execution.objects.update(claim_owner="another machine|4194305|1|ab", lease_until=Now(20))
    gone = f"{machine}|{2**22 + 1}|1|{random}"
    Execution.objects.filter(pk=dead.pk).update(claim_owner=gone, lease_until=Now(58.0))
    sweep.recover()
    assert set(Execution.objects.filter(claim_id=None).values_list("pk", flat=True)) == {dead.pk}


@pytest.fixture
def heard() -> Iterator[list[str]]:
    """The ends that a listener was told of."""
    told: list[str] = []

    def listen(execution: Execution, **_: object) -> None:
        told.append(execution.status)

    execution_finished.connect(listen)
    yield told
    execution_finished.disconnect(listen)


def ended(submit: Submit) -> Execution:
    """An execution that has ended; the test's transaction is not committed, as if the process died then."""
    return run_until_parked(submit())


def test_an_end_that_nobody_was_told_of_is_announced_once(submit: Submit, heard: list[str]) -> None:
    execution = ended(submit)
    sweep.announce()
    assert heard == []
    Execution.objects.filter(pk=execution.pk).update(announce_at=Now(-1))
    sweep.announce()
    sweep.announce()
    execution.refresh_from_db()
    assert (heard, execution.announce_at) == (["finished"], None)


def test_an_announcement_that_another_process_took_is_left_to_it(submit: Submit, heard: list[str]) -> None:
    execution = ended(submit)
    assert not store.announce_again(execution.pk)
    assert heard == []


@pytest.mark.django_db(transaction=True)
def test_who_was_told_in_time_is_not_told_again(submit: Submit, heard: list[str]) -> None:
    execution = ended(submit)
    assert (heard, execution.announce_at) == (["finished"], None)


def test_where_nobody_listens_an_end_costs_no_second_look(submit: Submit) -> None:
    assert ended(submit).announce_at is None

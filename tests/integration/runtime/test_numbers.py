"""Two sessions write events of one execution: no number is given twice, and none is left out."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from django.db import connection, transaction

from agency.enums import EventKind
from agency.execution import record, store
from agency.execution.claims import Claim
from agency.models import Execution
from agency.runtime.claim import claim
from tests.faults.processes import eventually
from tests.faults.test_unknown_commits import entry
from tests.integration.runtime.conftest import Submit

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres_only]


def somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted)")
        return cursor.fetchone()[0]


def beside(first: Callable[[], Any], then: Callable[[], Any]) -> None:
    """Let `then` wait for what `first` has locked, and commit that."""

    def work() -> None:
        try:
            then()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            first()
            writing = pool.submit(work)
            eventually(somebody_waits)
        writing.result(30)


@pytest.fixture
def claimed(submit: Submit) -> Claim:
    made = claim(submit().pk)
    assert made is not None
    return made


def kinds(claimed: Claim) -> list[tuple[int, str]]:
    execution = Execution.objects.get(pk=claimed.execution_id)
    return list(execution.events.order_by("seq").values_list("seq", "kind"))


def test_a_write_that_waited_takes_the_number_after_the_newest(claimed: Claim) -> None:
    record.record(claimed, record.Entry("1:user", events=entry(claimed).events))

    def tell() -> None:
        row = Execution.objects.select_for_update().get(pk=claimed.execution_id)
        store.lifecycle_event(row, EventKind.REQUEST_EXPIRING, {})

    beside(tell, lambda: record.record(claimed, entry(claimed)))
    assert kinds(claimed) == [
        (1, "execution_started"),
        (2, "content"),
        (3, "human_request_expiring"),
        (4, "content"),
    ]


def test_a_write_whose_first_try_comes_late_is_done_once(claimed: Claim) -> None:
    """The connection had died before it was known whether the first try arrived; its session still waited."""
    record.record(claimed, record.Entry("1:user", events=entry(claimed).events))
    said = entry(claimed)
    beside(lambda: record.record(claimed, said), lambda: record.record(claimed, said))
    assert kinds(claimed) == [(1, "execution_started"), (2, "content"), (3, "content")]


def test_a_session_that_has_lost_its_prepared_statements_is_left_for_another(claimed: Claim) -> None:
    for _ in range(2):
        record.record(claimed, record.Entry("1:user", events=entry(claimed).events))
    with connection.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")
    record.record(claimed, record.Entry("1:0:model", events=entry(claimed).events))
    assert [seq for seq, _ in kinds(claimed)] == [1, 2, 3, 4]


def test_a_write_gets_its_number_however_many_others_add_events(claimed: Claim) -> None:
    """Whoever finds its number taken is not kept from the next one by those that go on."""
    done = Event()

    def tell() -> None:
        try:
            while not done.is_set():
                with transaction.atomic():
                    row = Execution.objects.select_for_update().get(pk=claimed.execution_id)
                    store.lifecycle_event(row, EventKind.REQUEST_EXPIRING, {})
        finally:
            connection.close()

    with ThreadPoolExecutor(3) as pool:
        telling = [pool.submit(tell) for _ in range(3)]
        try:
            for n in range(10):
                events = entry(claimed).events
                record.record(claimed, record.Entry(f"{n}:user", events=events))
        finally:
            done.set()
        for one in telling:
            one.result(30)
    numbered = kinds(claimed)
    assert [seq for seq, _ in numbered] == list(range(1, len(numbered) + 1))
    assert sum(kind == "content" for _, kind in numbered) == 10

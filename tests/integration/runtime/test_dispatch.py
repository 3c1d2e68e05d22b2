"""Wake-ups come after the commit, cost the caller nothing, and are repeated less and less."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from django.db import OperationalError, connection, connections, transaction
from kombu import Connection

from agency.enums import Wakeup
from agency.models import Execution
from agency.models.clock import Now
from agency.runtime import queue
from agency.runtime.dispatcher import Dispatcher, mark_due
from tests.integration.runtime.conftest import Submit


@pytest.fixture
def messages(
    broker_url: str, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], list[tuple[str, int]]]:
    """The wake-ups on the real broker since the last look, as (execution id, iteration)."""
    name = f"wakes-{tmp_path.name}"
    settings.AGENCY = {"CELERY_APP": _app(broker_url, name)}
    queue._publishers.clear()
    # On a busy machine a broker that is there may well take a second to answer.
    monkeypatch.setattr(queue, "_HASTE", {**queue._HASTE, "socket_connect_timeout": 30, "socket_timeout": 30})

    def read() -> list[tuple[str, int]]:
        assert queue.publisher().flush(60.0)
        with Connection(broker_url) as broker, broker.SimpleQueue(name) as waiting:
            return list(_bodies(waiting))

    return read


def _bodies(waiting: Any) -> Iterator[tuple[str, int]]:
    while True:
        try:
            message = waiting.get(block=False)
        except waiting.Empty:
            return
        message.ack()
        yield tuple(json.loads(message.body)[0])


def _submit_and_fail(submit: Submit) -> None:
    with transaction.atomic():
        submit()
        raise KeyError("the caller changed its mind")


def _app(url: str, name: str) -> str:
    globals()["app"] = made = Celery("wakes", broker=url, set_as_current=False)
    made.conf.task_default_queue = name
    return f"{__name__}.app"


@pytest.mark.django_db(transaction=True)
class TestAfterTheCommit:
    def test_a_wake_up_is_sent_after_the_commit_and_not_before(self, submit: Submit, messages: Any) -> None:
        with transaction.atomic():
            execution = submit()
            assert messages() == []
        assert messages() == [(str(execution.pk), 1)]

    def test_nothing_is_sent_for_what_was_rolled_back(self, submit: Submit, messages: Any) -> None:
        with pytest.raises(KeyError):
            _submit_and_fail(submit)
        assert messages() == []

    def test_a_broker_that_is_away_delays_no_caller_and_loses_nothing(
        self, submit: Submit, settings: Any
    ) -> None:
        settings.AGENCY = {"CELERY_APP": _app("redis://127.0.0.1:1/0", "nowhere")}
        queue._publishers.clear()
        began = time.monotonic()
        execution = submit()
        assert time.monotonic() - began < 20.0
        assert queue.publisher().flush(60.0)
        assert mark_due() == [(str(execution.pk), 1, Wakeup.RUN_EXECUTION)]

    def test_two_dispatchers_wake_each_row_once(self, submit: Submit) -> None:
        expected = sorted(str(submit().pk) for _ in range(20))
        woken: list[str] = []

        def dispatch() -> None:
            try:
                woken.extend(execution_id for execution_id, *_ in mark_due())
            finally:
                connections.close_all()

        threads = [threading.Thread(target=dispatch) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(woken) == expected


@pytest.mark.django_db
def test_a_round_marks_no_more_than_its_batch_whatever_the_database_plans(
    submit: Submit, settings: Any
) -> None:
    settings.AGENCY = {"DISPATCH_BATCH": 5}
    due = {str(submit().pk) for _ in range(12)}
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            for way in ("hashjoin", "mergejoin", "hashagg", "sort", "material", "memoize"):
                cursor.execute(f"SET LOCAL enable_{way} = off")
    rounds = [{execution_id for execution_id, *_ in mark_due()} for _ in range(4)]
    assert [len(marked) for marked in rounds] == [5, 5, 2, 0]
    assert set().union(*rounds) == due


@pytest.mark.django_db
class TestBackoff:
    def test_a_row_that_stays_due_is_woken_again_only_after_a_growing_while(self, submit: Submit) -> None:
        execution = submit()
        assert [len(mark_due()), len(mark_due())] == [1, 0]
        _woken_before(execution, 16)
        assert [len(mark_due()), len(mark_due())] == [1, 0]
        _woken_before(execution, 16)
        assert mark_due() == []
        _woken_before(execution, 31)
        assert len(mark_due()) == 1

    def test_the_pause_between_wake_ups_ends_growing_at_five_minutes(self, submit: Submit) -> None:
        execution = submit()
        Execution.objects.filter(pk=execution.pk).update(wake_tries=50)
        _woken_before(execution, 299)
        assert mark_due() == []
        _woken_before(execution, 301)
        assert len(mark_due()) == 1

    def test_what_is_not_due_or_cancelled_is_not_woken(self, submit: Submit) -> None:
        later, cancelled = submit(), submit()
        Execution.objects.filter(pk=later.pk).update(next_run_at=Now(10))
        Execution.objects.filter(pk=cancelled.pk).update(cancel_requested_at=Now())
        assert mark_due() == []


def _woken_before(execution: Execution, seconds: float) -> None:
    Execution.objects.filter(pk=execution.pk).update(last_woken_at=Now(-seconds))


@pytest.mark.django_db(transaction=True)
def test_a_dispatcher_goes_on_after_the_database_was_away(submit: Submit, settings: Any) -> None:
    settings.AGENCY = {"DISPATCH_SECONDS": 0.01}
    dispatcher = Dispatcher()
    rounds = []

    def run() -> None:
        with connections["default"].execute_wrapper(fails_first):
            dispatcher.run()
        connections.close_all()

    def fails_first(execute: Any, *call: Any) -> Any:
        rounds.append(1)
        if len(rounds) == 1:
            raise OperationalError("gone")
        if len(rounds) > 4:
            dispatcher.stop()
        return execute(*call)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert len(rounds) > 4

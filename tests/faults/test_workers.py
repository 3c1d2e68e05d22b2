"""Real workers: Celery with threads and a broker, polling without one, and both with their power cut."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable

import pytest

from agency.execution import service
from agency.models import Execution
from tests.faults.processes import Processes, eventually, kill
from tests.integration.runtime.conftest import Submit

Bill = Callable[[], Counter[str]]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.e2e]
SOON = 20.0
"""Seconds, also on a busy machine; the lease of what is lost takes a minute."""
TWO_ATTEMPTS = 'jot x; {"a": 1} | jot y; {"b": "done"}'


def all_finished(count: int) -> Callable[[], bool]:
    return lambda: Execution.objects.filter(status="finished").count() == count


def hangs(bill: Bill) -> Callable[[], bool]:
    return lambda: any(line.startswith("hang") for line in bill())


def ledger(execution: Execution) -> list[tuple[int, str]]:
    return list(execution.iterations.order_by("n").values_list("n", "verdict"))


def test_a_celery_worker_runs_what_the_dispatcher_wakes(
    submit: Submit, bill: Bill, processes: Callable[..., Processes], broker_url: str
) -> None:
    # The worker looks once at its start, for the first row, and then not for an hour.
    started = processes(broker_url, POLL_SECONDS=3600)
    submit('{"a": "done"}')
    started.celery_worker()
    eventually(all_finished(1), log=started.log)
    rows = [submit(TWO_ATTEMPTS) for _ in range(5)]
    started.command("agency_dispatcher")
    eventually(all_finished(6), log=started.log)
    assert [ledger(row) for row in rows] == [[(1, "retry"), (2, "passed")]] * 5


def test_two_dispatchers_and_doubled_wake_ups_run_nothing_twice(
    submit: Submit, bill: Bill, processes: Callable[..., Processes], broker_url: str
) -> None:
    started = processes(broker_url, WAKE_BACKOFF_SECONDS=0.01, DISPATCH_SECONDS=0.02)
    rows = [submit(TWO_ATTEMPTS) for _ in range(8)]
    for _ in range(2):
        started.command("agency_dispatcher")
    started.celery_worker()
    eventually(all_finished(8), log=started.log)
    assert {row.fence for row in Execution.objects.all()} == {1}
    assert [ledger(row) for row in rows] == [[(1, "retry"), (2, "passed")]] * 8


def test_a_killed_celery_worker_is_recovered_and_each_attempt_is_in_the_ledger_once(
    submit: Submit, bill: Bill, processes: Callable[..., Processes], broker_url: str
) -> None:
    started = processes(broker_url)
    victim = started.celery_worker()
    execution = submit('jot x; {"a": 1} | jot y; hang; {"b": "done"}')
    eventually(hangs(bill), log=started.log)
    kill(victim)
    started.celery_worker()
    eventually(all_finished(1), log=started.log)
    assert ledger(execution) == [(1, "retry"), (2, "passed")]
    assert {line.split()[0] for line, count in bill().items() if count > 1} == {"hang"}


def test_a_polling_worker_needs_no_broker_and_another_takes_over_from_a_killed_one(
    submit: Submit, bill: Bill, processes: Callable[..., Processes]
) -> None:
    started = processes()
    execution = submit('hang; {"b": "done"}')
    others = [submit(TWO_ATTEMPTS) for _ in range(6)]
    victim = started.command("agency_worker", "--threads", "2")
    eventually(hangs(bill), log=started.log)
    kill(victim)
    started.command("agency_worker")
    eventually(all_finished(7), log=started.log)
    assert ledger(execution) == [(1, "passed")]
    assert [ledger(row) for row in others] == [[(1, "retry"), (2, "passed")]] * 6


@pytest.mark.parametrize("kind", ["celery", "polling"])
def test_a_worker_that_is_asked_to_end_gives_its_runs_back_and_is_gone_in_seconds(
    submit: Submit, bill: Bill, processes: Callable[..., Processes], broker_url: str, kind: str
) -> None:
    started = processes(broker_url if kind == "celery" else None, DRAIN_SECONDS=0.5)
    worker = started.celery_worker() if kind == "celery" else started.command("agency_worker")
    execution = submit("hang")
    eventually(hangs(bill), log=started.log)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(SOON) == 0
    execution.refresh_from_db()
    assert (execution.status, execution.claim_id, execution.claim_count) == ("in_progress", None, 0)


def test_the_children_of_a_prefork_worker_give_back_what_they_have_polled(
    submit: Submit, bill: Bill, processes: Callable[..., Processes], broker_url: str
) -> None:
    execution = submit("hang")
    started = processes(broker_url, DRAIN_SECONDS=0.5)
    worker = started.celery_worker("prefork", 1)
    eventually(hangs(bill), log=started.log)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(SOON) == 0
    execution.refresh_from_db()
    assert (execution.claim_id, execution.claim_count) == (None, 0)


def test_the_children_of_a_prefork_worker_give_back_what_woke_them(
    submit: Submit, bill: Bill, processes: Callable[..., Processes], broker_url: str
) -> None:
    started = processes(broker_url, DRAIN_SECONDS=0.5, POLL_SECONDS=3600)
    submit('{"a": "done"}')
    worker = started.celery_worker("prefork", 1)
    eventually(all_finished(1), log=started.log)
    execution = submit("hang")
    started.command("agency_dispatcher")
    eventually(hangs(bill), log=started.log)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(SOON) == 0
    execution.refresh_from_db()
    assert (execution.claim_id, execution.claim_count) == (None, 0)


@pytest.mark.parametrize("kind", ["threads", "prefork", "polling"])
def test_a_worker_ends_in_time_though_a_tool_does_not_and_gives_its_claim_back(
    submit: Submit, bill: Bill, processes: Callable[..., Processes], broker_url: str, kind: str
) -> None:
    started = processes(None if kind == "polling" else broker_url, DRAIN_SECONDS=0.5)
    worker = started.command("agency_worker") if kind == "polling" else started.celery_worker(kind, 1)
    execution = submit("sulk")
    eventually(lambda: any(line.startswith("sulk") for line in bill()), log=started.log)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(SOON) == 0
    execution.refresh_from_db()
    assert (execution.claim_id, execution.claim_count) == (None, 0)


def test_a_cancel_reaches_a_worker_within_moments(
    submit: Submit, bill: Bill, processes: Callable[..., Processes]
) -> None:
    started = processes()
    started.command("agency_worker")
    execution = submit("hang")
    eventually(hangs(bill), log=started.log)
    service.request_cancel(execution)
    began = time.monotonic()

    def is_cancelled() -> bool:
        execution.refresh_from_db()
        return execution.status == "cancelled"

    eventually(is_cancelled, log=started.log)
    assert time.monotonic() - began < SOON


def test_a_worker_with_a_pool_that_one_run_would_stop_does_not_start(
    processes: Callable[..., Processes], broker_url: str
) -> None:
    started = processes(broker_url)
    assert started.celery_worker("solo", 1).wait(120) == os.EX_CONFIG
    assert "Start this worker with --pool threads or prefork" in started.log()

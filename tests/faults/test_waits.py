"""Missions that wait, while processes die and connections are cut: no wait is lost and none ends twice."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from agency.enums import EventKind, Verdict
from agency.execution import store
from agency.execution.claims import Claim
from agency.execution.conversation import ClosedAttempt
from agency.execution.failure import ExecutionResult
from agency.execution.metadata import WAIT
from agency.mission import extending, looking, signals, waiting, waits
from agency.mission.loop import Wait
from agency.mission.watches import registry
from agency.models import ConfiguredAgent, Execution
from agency.models.clock import Now
from agency.runtime import sweep
from agency.runtime.claim import claim
from agency.runtime.wiring import use_client
from agency.testing import run_until_parked
from tests.faults.app.missions import Gong
from tests.faults.processes import Processes, eventually, kill
from tests.faults.proxy import Proxy
from tests.integration.mission.scripted import Model, decision, mission

pytestmark = pytest.mark.django_db(transaction=True)
Bill = Callable[[], Counter[str]]


@pytest.fixture(autouse=True)
def gong() -> Iterator[None]:
    with registry.isolated():
        registry.register(Gong)
        yield


def go_on() -> bool:
    return False


def closed(verdict: Verdict = Verdict.WAIT) -> ClosedAttempt:
    return ClosedAttempt(1, verdict, "must wait", feedback="on", kind=EventKind.ITERATION_COMPLETED)


def claimed(agent: ConfiguredAgent, **fields: Any) -> Claim:
    """A loop whose first iteration runs."""
    made = claim(mission(agent, loop_prompt="Go.", **fields).dispatch().pk)
    assert made is not None
    return made


def waiting_row(agent: ConfiguredAgent, **wait: Any) -> Execution:
    made = claimed(agent)
    looking.begin(made, closed(), Wait(**wait), go_on)
    return Execution.objects.get(pk=made.execution_id)


def at_its_end(row: Execution) -> Claim:
    """The claim that is to look whether the wait is over."""
    Execution.objects.filter(pk=row.pk).update(next_run_at=Now(-1))
    made = claim(row.pk)
    assert made is not None and made.is_waiting
    return made


@pytest.mark.e2e
def test_a_worker_killed_in_a_look_leaves_the_wait_to_another(
    clerk: ConfiguredAgent, bill: Bill, processes: Callable[..., Processes]
) -> None:
    row = waiting_row(clerk, watch="fault-gong")
    Execution.objects.filter(pk=row.pk).update(next_run_at=Now(-1))
    made = processes()
    victim = made.claimer(row.pk)
    eventually(lambda: bill()["look"] == 1, log=made.log)
    row.refresh_from_db()
    assert (row.loop_status, row.claim_id is None) == ("running", False)
    kill(victim)

    def is_due() -> bool:
        sweep.recover()
        row.refresh_from_db()
        return row.next_run_at is not None

    eventually(is_due)
    assert (row.iteration, WAIT in row.metadata) == (1, True)
    model = Model()
    model.answers, model.decisions = ["Done."], [decision("complete", evidence="Done.")]
    with use_client(model):
        done = run_until_parked(row)
    assert (done.loop_status, done.iteration, bill()["look"]) == ("completed", 2, 2)
    ends = done.events.filter(kind=EventKind.LOOP_RESUMED.value)
    assert [event.data["by"] for event in ends] == ["watch"]


@pytest.mark.e2e
def test_a_signal_whose_wake_up_is_lost_is_heard_by_who_polls(
    clerk: ConfiguredAgent, processes: Callable[..., Processes]
) -> None:
    """It is stored by a process that sends no wake-up; a polling worker finds the row due."""
    row = waiting_row(clerk, signal="stock")
    made = processes(POLL_SECONDS=0.1)
    made.command("agency_worker")
    assert signals.send(row, "stock", "ten boxes").ended_wait is True

    def has_begun() -> bool:
        row.refresh_from_db()
        return row.thread.messages.filter(iteration=2, said_by="signal").exists()

    eventually(has_begun, log=made.log)
    assert "ten boxes" in row.thread.messages.get(iteration=2, said_by="signal").content


Prepared = tuple[Any, Callable[[], Any]]


def _kept(made: Claim) -> dict[str, Any]:
    return Execution.objects.get(pk=made.execution_id).metadata[WAIT]


def _enter(agent: ConfiguredAgent) -> Prepared:
    made = claimed(agent)
    return made.execution_id, lambda: waiting.enter(made, closed(), Wait(seconds=60))


def _look_again(agent: ConfiguredAgent) -> Prepared:
    made = at_its_end(waiting_row(agent, watch="fault-gong"))
    kept = {**_kept(made), "failures": 1}
    return made.execution_id, lambda: waiting.look_again(made, kept, 30.0, "OSError")


def _end(agent: ConfiguredAgent) -> Prepared:
    made = at_its_end(waiting_row(agent, watch="fault-gong"))
    ending = waits.by_watch(_kept(made), "gong")
    return made.execution_id, lambda: waiting.end_claimed(made, ending)


def _signal(agent: ConfiguredAgent) -> Prepared:
    row = waiting_row(agent, signal="stock")
    return row.pk, lambda: signals.send(row, "stock", 1, agent.owner).ended_wait


def _run_now(agent: ConfiguredAgent) -> Prepared:
    row = waiting_row(agent, seconds=60)
    return row.pk, lambda: waiting.run_now(row, agent.owner).refused is None


def _extend(agent: ConfiguredAgent) -> Prepared:
    made = claimed(agent, max_iterations=1)
    limit = ExecutionResult(False, failure_code="limit_reached", failure_summary="All used.")
    store.finish(made, limit, closed(Verdict.CONTINUE))
    row = Execution.objects.get(pk=made.execution_id)
    return row.pk, lambda: extending.extend(row, 2, agent.owner).refused is None


# What is prepared, and what the row has after it: loop, claimed, committed iterations, waiting.
WRITES: dict[str, tuple[Callable[[ConfiguredAgent], Prepared], tuple[Any, ...]]] = {
    "enter": (_enter, ("waiting", False, 1, True)),
    "look_again": (_look_again, ("waiting", False, 1, True)),
    "end": (_end, ("running", True, 1, False)),
    "signal": (_signal, ("running", False, 1, False)),
    "run_now": (_run_now, ("running", False, 1, False)),
    "extend": (_extend, ("running", False, 1, False)),
}
EVENTS = {"enter": 1, "look_again": 1, "end": 2, "signal": 2, "run_now": 1, "extend": 1}
"""How many events a write adds, beside that of the iteration which `enter` commits."""


@pytest.mark.postgres_only
@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_done_once_wherever_its_connection_is_cut(
    name: str, arrives: bool, proxy: Proxy, clerk: ConfiguredAgent
) -> None:
    prepare, wanted = WRITES[name]
    cuts = 0
    while True:
        pk, write = prepare(clerk)
        before = Execution.objects.get(pk=pk).events.count() + (name == "enter")
        struck = proxy.struck
        proxy.cut(cuts + 1, arrives=arrives)
        told = write()
        proxy.spare()
        connection.close_if_unusable_or_obsolete()
        assert told is True, f"cut at round trip {cuts + 1}"
        row = Execution.objects.get(pk=pk)
        state = (row.loop_status, row.claim_id is not None, row.iteration, WAIT in row.metadata)
        assert state == wanted, f"cut at round trip {cuts + 1}"
        assert row.events.count() == before + EVENTS[name]
        assert row.signals.count() == (name == "signal")
        assert row.generation == (2 if name == "extend" else 1)
        if proxy.struck == struck:
            break
        cuts += 1
    assert cuts >= 1

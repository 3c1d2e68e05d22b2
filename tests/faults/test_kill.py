"""A process that runs an execution is killed in the middle; another one goes on where it was."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from agency.models import Execution
from agency.runtime import sweep
from agency.runtime.claim import claim
from agency.testing import run_until_parked
from tests.faults.processes import Processes, eventually, kill
from tests.integration.human.conftest import answer, open_request, results
from tests.integration.runtime.conftest import Submit

Bill = Callable[[], Counter[str]]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.e2e]
LEASE = 60.0
"""After so many seconds a claim is taken over whatever is known of its owner."""


def kill_at(execution: Execution, line: str, processes: Processes, bill: Bill) -> None:
    """Run the execution in a process of its own and kill that when `line` is on the bill."""
    victim = processes.claimer(execution.pk)
    eventually(lambda: any(told.startswith(line) for told in bill()), log=processes.log)
    kill(victim)


def recover(execution: Execution) -> float:
    """Sweep until the execution is due again; returns the seconds it took."""
    began = time.monotonic()

    def is_due() -> bool:
        sweep.recover()
        execution.refresh_from_db()
        return execution.next_run_at is not None

    eventually(is_due)
    return time.monotonic() - began


def test_a_run_killed_in_its_second_attempt_goes_on_there_and_pays_for_nothing_twice(
    submit: Submit, bill: Bill, processes: Callable[..., Processes]
) -> None:
    execution = submit('jot x; {"a": 1} | jot y; hang; {"b": 2} | {"c": "done"}')
    kill_at(execution, "hang", processes(), bill)
    seconds = recover(execution)
    done = run_until_parked(execution)

    assert seconds < LEASE / 2
    assert (done.status, done.fence) == ("finished", 2)
    ledger = list(done.iterations.order_by("n").values_list("n", "verdict", "feedback"))
    assert ledger == [
        (1, "retry", "Say 'done'. You jotted: x."),
        (2, "retry", "Say 'done'. You jotted: y."),
        (3, "passed", None),
    ]
    assert {line.split()[0] for line, count in bill().items() if count > 1} == {"hang"}
    assert list(done.events.values_list("seq", flat=True)) == list(range(1, done.event_seq + 1))


def test_an_idempotent_call_that_was_cut_is_made_again_with_the_same_key(
    submit: Submit, bill: Bill, processes: Callable[..., Processes]
) -> None:
    execution = submit('hang; {"a": "done"}')
    kill_at(execution, "hang", processes(), bill)
    recover(execution)
    assert run_until_parked(execution).status == "finished"
    assert [(line.split(":")[1:4], count) for line, count in bill().items() if line.startswith("hang")] == [
        (["1", "1", "0"], 2)
    ]


def test_an_unsafe_call_that_was_cut_is_never_made_again_unasked(
    submit: Submit, bill: Bill, processes: Callable[..., Processes]
) -> None:
    execution = submit('pay 5; {"a": "done"}')
    kill_at(execution, "pay", processes(), bill)
    recover(execution)
    assert run_until_parked(execution).status == "interrupted"
    assert open_request(execution).kind == "uncertain_effect"
    answer(execution, "happened", result="paid 5")
    done = run_until_parked(execution)
    assert (done.status, results(done)) == ("finished", [("success", "paid 5")])
    assert bill()["pay 5"] == 1


def test_a_cut_call_that_a_person_lets_run_again_and_that_is_cut_again_asks_again(
    submit: Submit, bill: Bill, processes: Callable[..., Processes]
) -> None:
    execution = run_until_parked(submit('spend 3; pay 5; {"a": "done"}'))
    answer(execution, "approve")
    kill_at(execution, "pay", processes(), bill)
    recover(execution)
    run_until_parked(execution)
    assert [item.tool for item in open_request(execution).items.all()] == ["pay"]
    answer(execution, "run_again")

    victim = processes().claimer(execution.pk)
    eventually(lambda: bill()["pay 5"] == 2)
    kill(victim)
    recover(execution)
    assert run_until_parked(execution).status == "interrupted"
    answer(execution, "give_up")
    execution.refresh_from_db()
    assert execution.status == "failed"
    assert bill()["pay 5"] == 2


def test_an_answer_outlives_every_process(
    submit: Submit, bill: Bill, processes: Callable[..., Processes]
) -> None:
    execution = submit('jot x; spend 5; hang; {"a": "done"}')
    first = processes().claimer(execution.pk)
    eventually(lambda: execution.human_requests.filter(status="open").exists())
    first.wait()
    answer(execution, "approve", arguments={"amount": 666})

    # The approved call is cut, a person lets it run again, and the run is cut once more after it.
    kill_at(execution, "spend 666", processes(), bill)
    recover(execution)
    run_until_parked(execution)
    assert open_request(execution).message.startswith("spend(amount=666) was cut")
    answer(execution, "run_again")
    kill_at(execution, "hang", processes(), bill)
    recover(execution)

    done = run_until_parked(execution)
    assert (done.status, done.fence) == ("finished", 5)
    assert results(done) == [("success", "noted x"), ("success", "spent 666"), ("success", "back again")]
    assert (bill()["spend 5"], bill()["spend 666"]) == (0, 2)
    twice = {line.split()[0] for line, count in bill().items() if count > 1}
    assert twice == {"spend", "hang"}


def test_a_run_that_kills_its_workers_is_given_up(
    submit: Submit, bill: Bill, processes: Callable[..., Processes], settings: Any
) -> None:
    settings.AGENCY = {"CLAIM_CAP": 1}
    execution = submit("hang")
    kill_at(execution, "hang", processes(), bill)
    recover(execution)
    assert claim(execution.pk) is None
    sweep.close()
    execution.refresh_from_db()
    assert (execution.status, execution.failure_code) == ("failed", "crash_loop")
    assert execution.events.last().kind == "execution_failed"

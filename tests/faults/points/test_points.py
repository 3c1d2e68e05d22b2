"""F0: a process dies at each named place in turn, and what the next one makes of it is exactly right."""

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agency.execution import service
from agency.models import Execution
from agency.runtime import sweep
from agency.runtime.claim import claim
from agency.testing import run_until_parked
from tests.faults.points.mortals import Mortals
from tests.faults.points.points import DEAD, ELSEWHERE, RUNNING, STATEMENT
from tests.faults.processes import eventually
from tests.integration.human.conftest import answer, open_request
from tests.integration.runtime.conftest import Submit

Bill = Callable[[], Counter[str]]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.e2e]

ERRAND = 'jot x; {"a": 1} | jot y; {"b": "done"}'
LEDGER = [(1, "retry", "Say 'done'. You jotted: x."), (2, "passed", None)]
CONFIRMED = 'spend 5; {"a": "done"}'
NEEDED = {"model 1.0": 1, "model 1.1": 1, "model 2.0": 1, "model 2.1": 1}


@pytest.fixture(autouse=True)
def impatient(settings: Any) -> None:
    """A dead owner is found as soon as it has missed its next beat, which need not be waited for."""
    settings.AGENCY = {"BEAT_SECONDS": 0.01}


def recovered(execution: Execution) -> Execution:
    """The next claimer's work, in this process."""

    def is_free() -> bool:
        sweep.recover()
        execution.refresh_from_db()
        return execution.claim_id is None

    eventually(is_free)
    return run_until_parked(execution)


def assert_done_right(execution: Execution, bill: Bill, repeats: str = "") -> None:
    """One right end, and each answer and effect paid once, but for the one `repeats` that was cut."""
    assert (execution.status, execution.output) == ("finished", {"b": "done"})
    assert list(execution.iterations.order_by("n").values_list("n", "verdict", "feedback")) == LEDGER
    told = bill()
    assert {line for line in told if line.startswith("model")} == set(NEEDED)
    assert len([line for line in told if line.startswith("jot")]) == 2
    twice = [line.split()[0] for line, count in told.items() for _ in range(count - 1)]
    assert twice == ([{"model": "model", "tool": "jot"}[repeats]] if repeats else [])


@pytest.mark.parametrize(
    ("name", "nth"), [(name, nth) for name, point in RUNNING.items() for nth in range(1, point.times + 1)]
)
def test_a_run_that_dies_at(name: str, nth: int, mortals: Mortals, submit: Submit, bill: Bill) -> None:
    execution = submit(ERRAND)
    assert mortals.do("run", name, nth, execution=str(execution.pk)) == DEAD
    done = recovered(execution)
    assert_done_right(done, bill, RUNNING[name].repeats)
    assert done.fence == (1 if name in {"before_claim_commit", "after_finish_before_signal"} else 2)


@pytest.mark.parametrize("name", RUNNING)
def test_no_run_gets_to_a_point_more_often_than_is_tested(
    name: str, mortals: Mortals, submit: Submit, bill: Bill
) -> None:
    execution = submit(ERRAND)
    assert mortals.do("run", name, RUNNING[name].times + 1, execution=str(execution.pk)) == 0
    execution.refresh_from_db()
    assert_done_right(execution, bill)


def test_a_run_that_dies_before_any_one_of_its_statements_and_commits(
    mortals: Mortals, submit: Submit, bill: Bill
) -> None:
    deaths = 0
    while True:
        execution = submit('jot x; {"a": "done"}')
        before = bill()
        if mortals.do("run", STATEMENT, deaths + 1, execution=str(execution.pk)) == 0:
            break
        deaths += 1
        done = recovered(execution)
        assert (done.status, done.output, done.iteration) == ("finished", {"a": "done"}, 1), deaths
        paid = bill() - before
        # Three are needed, and at most one was cut.
        assert sum(paid.values()) <= 4, (deaths, paid)
    assert deaths > 20


def test_an_order_whose_sender_dies_before_the_wake_up_is_found_all_the_same(
    mortals: Mortals, clerk: Any, bill: Bill
) -> None:
    values = {"agent": str(clerk.pk), "task": ERRAND}
    assert mortals.do("submit", "after_commit_before_publish", **values) == DEAD
    again = service.submit("fault-errand", clerk, {"task": ERRAND}, idempotency_key="once")
    assert not again.created
    claimed = claim()
    assert claimed is not None
    assert claimed.execution_id == str(again.execution.pk)


def test_a_dispatcher_that_dies_between_mark_and_message_delays_nothing_for_who_polls(
    mortals: Mortals, submit: Submit, bill: Bill
) -> None:
    execution = submit(ERRAND)
    assert mortals.do("dispatch", "after_mark_before_publish") == DEAD
    claimed = claim()
    assert claimed is not None
    assert claimed.execution_id == str(execution.pk)


@pytest.mark.parametrize("name", ["before_release", "inside_release", "after_release"])
def test_a_worker_that_dies_while_it_gives_back(
    name: str, mortals: Mortals, submit: Submit, bill: Bill
) -> None:
    execution = submit(ERRAND)
    assert mortals.do("drain", name, execution=str(execution.pk)) == DEAD
    assert_done_right(recovered(execution), bill)


def test_a_sweep_that_dies_has_left_the_row_due(mortals: Mortals, submit: Submit, bill: Bill) -> None:
    execution = submit(ERRAND)
    assert mortals.do("run", "after_claim", execution=str(execution.pk)) == DEAD
    eventually(lambda: mortals.do("sweep", "after_sweep") == DEAD)
    assert_done_right(run_until_parked(execution), bill)


@pytest.mark.parametrize("name", ["after_cancel_asked", "inside_cancel"])
def test_a_cancel_whose_sender_dies_is_carried_out_or_never_was(
    name: str, mortals: Mortals, submit: Submit, bill: Bill
) -> None:
    execution = submit(ERRAND)
    assert mortals.do("cancel", name, execution=str(execution.pk)) == DEAD
    done = run_until_parked(execution)
    assert done.status == "cancelled"
    assert bill() == Counter()
    assert list(done.events.values_list("kind", flat=True)) == ["execution_cancelled"]


@pytest.mark.parametrize("name", ["before_park", "inside_park", "after_park"])
def test_a_run_that_dies_while_it_parks_asks_once(
    name: str, mortals: Mortals, submit: Submit, bill: Bill
) -> None:
    execution = submit(CONFIRMED)
    assert mortals.do("run", name, execution=str(execution.pk)) == DEAD
    waiting = recovered(execution)
    assert (waiting.status, waiting.human_requests.count()) == ("interrupted", 1)
    assert bill() == Counter(["model 1.0"])


@pytest.mark.parametrize("name", ["inside_answer", "after_answer_of_person"])
def test_an_answer_whose_sender_dies_counts_once_or_can_be_given_again(
    name: str, mortals: Mortals, submit: Submit, bill: Bill
) -> None:
    waiting = run_until_parked(submit(CONFIRMED))
    request = open_request(waiting)
    assert mortals.do("answer", name, request=str(request.pk)) == DEAD
    request.refresh_from_db()
    assert request.status == ("open" if name == "inside_answer" else "answered")
    if request.status == "open":
        answer(waiting, "approve")
    assert run_until_parked(waiting).status == "finished"
    assert bill() == Counter(["model 1.0", "spend 5", "model 1.1"])


def test_a_pause_and_its_answer_that_die_before_any_one_of_their_statements(
    mortals: Mortals, submit: Submit, bill: Bill
) -> None:
    for deaths in itertools.count(1):
        execution = submit(CONFIRMED)
        before = bill()
        lived = mortals.do("run", STATEMENT, deaths, execution=str(execution.pk)) == 0
        waiting = recovered(execution)
        request = open_request(waiting)
        lived = mortals.do("answer", STATEMENT, deaths, request=str(request.pk)) == 0 and lived
        request.refresh_from_db()
        if request.status == "open":
            answer(waiting, "approve")
        done = run_until_parked(execution)
        assert (done.status, done.human_requests.count()) == ("finished", 1), deaths
        paid = bill() - before
        assert (paid["spend 5"], sum(paid.values()) <= 4) == (1, True), (deaths, paid)
        if lived:
            break
    assert deaths > 10


def test_every_named_point_is_tested_here() -> None:
    text = Path(__file__).read_text()
    assert [name for name in ELSEWHERE if f'"{name}"' not in text] == []

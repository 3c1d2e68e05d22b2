"""Faults of `docs/faults.md` that no other module is about."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import time_machine
from django.db import connections

from agency.enums import Verdict
from agency.errors import StaleExecution
from agency.execution import answering, service, store
from agency.execution.conversation import ClosedAttempt
from agency.execution.failure import ExecutionResult
from agency.models import Execution
from agency.models.clock import Now
from agency.runtime import sweep
from agency.runtime.body import run_claimed
from agency.runtime.claim import claim
from agency.testing import run_until_parked
from tests.faults.processes import eventually
from tests.integration.human.conftest import open_request, say
from tests.integration.runtime.conftest import Submit

Bill = Callable[[], Counter[str]]
pytestmark = pytest.mark.django_db(transaction=True)
ELSEWHERE = "another machine|1|1|a"


def test_a_cancel_while_no_worker_is_up_costs_no_call(submit: Submit, bill: Bill) -> None:
    execution = submit()
    assert service.request_cancel(execution) == "cancelled"
    assert run_until_parked(execution).status == "cancelled"
    assert bill() == Counter()


@pytest.mark.parametrize("minutes", [10, -10])
def test_a_worker_whose_clock_is_wrong_takes_nothing_early(submit: Submit, minutes: int) -> None:
    claimed, later = submit(), submit()
    assert claim(claimed.pk) is not None
    Execution.objects.filter(pk=claimed.pk).update(claim_owner=ELSEWHERE)
    Execution.objects.filter(pk=later.pk).update(next_run_at=Now(30))
    with time_machine.travel(time.time() + minutes * 60):
        sweep.recover()
        sweep.close()
        assert claim(claimed.pk) is None
        assert claim() is None
    claimed.refresh_from_db()
    assert claimed.claim_owner == ELSEWHERE


def test_a_fence_that_went_back_lets_no_old_claim_write(submit: Submit) -> None:
    execution = submit()
    old = claim(execution.pk)
    assert old is not None
    # As after a failover that lost the claim: the row is due again, its fence as it was.
    Execution.objects.filter(pk=execution.pk).update(
        claim_id=None, claim_owner=None, lease_until=None, next_run_at=Now(), fence=0, claim_count=0
    )
    new = claim(execution.pk)
    assert new is not None
    assert new.fence == old.fence
    with pytest.raises(StaleExecution):
        store.finish(old, ExecutionResult(True))
    closed = ClosedAttempt(n=1, verdict=Verdict.PASSED, summary="so it was")
    assert store.finish(new, ExecutionResult(True, {"a": 1}), closed) == "finished"


def test_a_run_that_was_ordered_before_its_agent_was_edited_runs_as_it_was_ordered(
    submit: Submit, bill: Bill
) -> None:
    two_calls = 'jot x; {"a": "done"}'
    before = submit(two_calls)
    agent = before.agent
    agent.limits = {"max_model_calls": 1}
    agent.save()
    after = service.submit("fault-errand", agent, before.input).execution
    assert run_until_parked(before).status == "finished"
    assert run_until_parked(after).status == "failed"


def test_after_a_cancel_in_the_first_call_the_others_are_not_made(submit: Submit, bill: Bill) -> None:
    execution = submit('hang; jot a; jot b; jot c; {"a": "done"}')
    claimed = claim(execution.pk)
    assert claimed is not None
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(run_claimed(claimed))
        finally:
            connections.close_all()

    running = threading.Thread(target=run)
    running.start()
    eventually(lambda: any(line.startswith("hang") for line in bill()))
    service.request_cancel(execution)
    running.join(30)
    assert outcome == ["cancelled"]
    assert [line for line in bill() if line.startswith("jot")] == []


def test_of_many_who_answer_at_once_one_wins_and_the_others_are_told(submit: Submit, bill: Bill) -> None:
    people = 6
    for _ in range(5):
        waiting = run_until_parked(submit('spend 5; {"a": "done"}'))
        request = open_request(waiting)
        given = [[say(request, 0, "reject", reason=f"so says {n}")] for n in range(people)]
        together = threading.Barrier(people)
        told: list[Any] = []

        def decide(
            n: int, request: Any = request, given: Any = given, together: Any = together, told: Any = told
        ) -> None:
            try:
                together.wait(30)
                told.append((n, answering.answer(request.pk, given[n], request.execution.owner)))
            finally:
                connections.close_all()

        threads = [threading.Thread(target=decide, args=(n,)) for n in range(people)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        winners = [n for n, answered in told if answered.refused is None]
        assert (len(told), len(winners)) == (people, 1)
        assert {answered.request.items.get().reason for _, answered in told} == {f"so says {winners[0]}"}
        assert run_until_parked(waiting).status == "finished"
    assert bill()["spend 5"] == 0

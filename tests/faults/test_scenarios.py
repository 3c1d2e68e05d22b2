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
from agency.execution import service, store
from agency.execution.conversation import ClosedAttempt
from agency.execution.failure import ExecutionResult
from agency.models import Execution
from agency.models.clock import Now
from agency.runtime import sweep
from agency.runtime.body import run_claimed
from agency.runtime.claim import claim
from agency.testing import run_until_parked
from tests.faults.processes import eventually
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

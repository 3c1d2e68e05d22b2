"""The connection to PostgreSQL is cut at every round trip of every write, before and after it arrived.

Nothing may be written twice, nothing that was promised lost, and the caller must be told the truth.
"""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import Error, InterfaceError, connection

from agency.agent.events import Event, Message
from agency.enums import Effect, Verdict
from agency.execution import record, store
from agency.execution.claims import Claim
from agency.execution.conversation import ClosedAttempt
from agency.execution.failure import ExecutionResult
from agency.models import Execution, clock
from agency.runtime import sweep
from agency.runtime.claim import claim
from tests.faults.proxy import Proxy
from tests.integration.runtime.conftest import Submit

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres_only]
Write = Callable[[Claim], Any]


def closed(n: int, verdict: Verdict) -> ClosedAttempt:
    return ClosedAttempt(n=n, verdict=verdict, summary="so it was", feedback="again")


def entry(claim: Claim) -> record.Entry:
    said = Event(execution_id=claim.execution_id, author="user", content=[Message(role="user", content="hi")])
    return record.Entry("1:t:model", {"a": 1}, [said])


WRITES: dict[str, tuple[Write, dict[str, Any]]] = {
    "record": (lambda claim: record.record(claim, entry(claim)), {"events": 2, "steps": 1, "messages": 1}),
    "intend": (
        lambda claim: record.intend(claim, "1:t:jot:x", Effect.UNSAFE, "key").claim_id == claim.claim_id,
        {"steps": 1},
    ),
    "commit_attempt": (
        lambda claim: store.commit_attempt(claim, closed(1, Verdict.RETRY)),
        {"events": 2, "iteration": 1},
    ),
    "hand_on": (
        lambda claim: store.hand_on(claim, closed(1, Verdict.CONTINUE)),
        {"events": 2, "iteration": 1, "claimed": False, "claim_count": 0},
    ),
    "finish": (
        lambda claim: store.finish(claim, ExecutionResult(True, {"a": 1}), closed(1, Verdict.PASSED)),
        {"events": 3, "iteration": 1, "status": "finished", "claimed": False},
    ),
    "release": (lambda claim: store.release(claim), {"claimed": False, "claim_count": 0}),
}
UNTOUCHED = {
    "events": 1,
    "steps": 0,
    "messages": 0,
    "iteration": 0,
    "status": "in_progress",
    "claimed": True,
    "claim_count": 1,
}


def state(execution: Execution) -> dict[str, Any]:
    execution.refresh_from_db()
    return {
        "events": execution.events.count(),
        "steps": execution.steps.count(),
        "messages": execution.thread.messages.count(),
        "iteration": execution.iteration,
        "status": execution.status,
        "claimed": execution.claim_id is not None,
        "claim_count": execution.claim_count,
    }


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_done_once_wherever_its_connection_is_cut(
    name: str, arrives: bool, proxy: Proxy, submit: Submit
) -> None:
    write, changes = WRITES[name]
    if name == "commit_attempt":
        changes = changes | {"claim_count": 0}
    cuts = 0
    while True:
        execution = submit()
        claimed = claim(execution.pk)
        assert claimed is not None
        struck = proxy.struck
        proxy.cut(cuts + 1, arrives=arrives)
        write(claimed)
        proxy.spare()
        connection.close_if_unusable_or_obsolete()
        assert state(execution) == UNTOUCHED | changes, f"cut at round trip {cuts + 1}"
        if proxy.struck == struck:
            break
        cuts += 1
    assert cuts >= 1


@pytest.mark.parametrize("arrives", [True, False])
def test_a_claim_whose_answer_was_lost_is_found_by_the_sweep_long_before_its_lease_ends(
    arrives: bool, proxy: Proxy, submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuts = 0
    while True:
        execution = submit()
        struck = proxy.struck
        proxy.cut(cuts + 1, arrives=arrives)
        try:
            claimed = claim(execution.pk)
        except (Error, InterfaceError):
            connection.close()
            claimed = None
        proxy.spare()
        if proxy.struck == struck:
            break
        cuts += 1
        assert claimed is None
        monkeypatch.setattr(clock, "offset_seconds", 3.0)
        sweep.recover()
        monkeypatch.undo()
        execution.refresh_from_db()
        assert execution.next_run_at is not None
        again = claim(execution.pk, ignore_due=True)
        assert again is not None
        assert execution.events.count() == again.fence
        store.finish(again, ExecutionResult(True))
    assert cuts >= 2


def test_a_server_that_ended_while_the_session_was_idle_costs_nothing(proxy: Proxy, submit: Submit) -> None:
    """What is sent finds nobody, what is read is a warning, and libpq still calls its session good."""
    execution = submit()
    claimed = claim(execution.pk)
    assert claimed is not None
    proxy.crash()
    record.record(claimed, entry(claimed))
    assert state(execution) == UNTOUCHED | WRITES["record"][1]

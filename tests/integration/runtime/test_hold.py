"""A row that this code does not know is left to a release that does: it neither fails nor counts as lost."""

from typing import Any

import pytest

from agency.api.schemas import ExecutionOut
from agency.cli.doctor import queue
from agency.errors import ConfigurationError
from agency.execution import registry, service
from agency.models import Execution
from agency.models.clock import Now
from agency.runtime.body import Outcome, run_claimed
from agency.runtime.claim import claim
from agency.testing import run_until_parked
from tests.faults.app.agents import Clerk
from tests.integration.runtime.conftest import Submit

pytestmark = pytest.mark.django_db


def held(execution: Execution) -> dict[str, Any]:
    """Claim and run it once; it must be held then."""
    claimed = claim(execution.pk, ignore_due=True)
    assert claimed is not None
    assert run_claimed(claimed) is Outcome.HELD
    execution.refresh_from_db()
    return execution.metadata["held"]


def due_between(execution: Execution, least: float, most: float) -> bool:
    rows = Execution.objects.filter(pk=execution.pk)
    return rows.filter(next_run_at__gt=Now(least), next_run_at__lte=Now(most)).exists()


def test_an_unknown_definition_is_tried_again_less_and_less_often(submit: Submit) -> None:
    execution = submit()
    with registry.isolated(empty=True):
        first = held(execution)
        assert "no definition is registered as 'fault-errand'" in first["reason"]
        assert due_between(execution, 25, 30)
        assert (execution.status, execution.claim_count) == ("in_progress", 0)
        second = held(execution)
        assert due_between(execution, 55, 60)
        for _ in range(6):
            last = held(execution)
        assert due_between(execution, 595, 600)
    assert first["since"] == second["since"] == last["since"]


def test_a_worker_that_knows_it_goes_on_and_nothing_is_left_of_the_hold(submit: Submit) -> None:
    execution = submit()
    with registry.isolated(empty=True):
        held(execution)
    assert run_until_parked(execution).status == "finished"
    execution.refresh_from_db()
    assert execution.metadata == {}


def test_an_agent_class_that_is_not_there_holds_it_too(submit: Submit) -> None:
    execution = submit()
    with registry.isolated():
        registry._state.agents.pop(Clerk.AGENT_KEY)
        assert "no agent class is registered as 'fault-clerk'" in held(execution)["reason"]


def test_a_snapshot_of_an_unknown_version_holds_it(submit: Submit) -> None:
    execution = submit()
    execution.config["version"] = 99
    execution.save(update_fields=["config"])
    assert "its snapshot has version 99" in held(execution)["reason"]


def test_the_deadline_stands_still_meanwhile(submit: Submit) -> None:
    execution = submit()
    with registry.isolated(empty=True):
        held(execution)
        first = execution.deadline_at
        held(execution)
    assert 59 < (execution.deadline_at - first).total_seconds() <= 61


def test_a_held_execution_can_be_cancelled(submit: Submit) -> None:
    execution = submit()
    with registry.isolated(empty=True):
        held(execution)
    assert service.request_cancel(execution) == "cancelled"


def test_api_and_doctor_say_what_is_missing(submit: Submit) -> None:
    execution = submit()
    with registry.isolated(empty=True):
        held(execution)
    shown = ExecutionOut.of(Execution.objects.select_related("agent").get(pk=execution.pk))
    assert shown.held is not None
    assert "no definition is registered" in shown.held.reason
    [finding] = [one for one in queue.examine() if one.name == "Held"]
    assert str(execution.pk) in finding.detail
    assert not finding.ok


def test_whoever_waits_for_it_in_this_process_is_told(submit: Submit) -> None:
    execution = submit()
    with (
        registry.isolated(empty=True),
        pytest.raises(ConfigurationError, match="no definition is registered as 'fault-errand'"),
    ):
        run_until_parked(execution)


def test_the_doctor_sees_work_that_nobody_takes(submit: Submit) -> None:
    submit()
    Execution.objects.update(next_run_at=Now(-90))
    finding = next(iter(queue.examine()))
    assert finding.detail.startswith("1 due, the oldest for 90 s")
    assert not finding.ok

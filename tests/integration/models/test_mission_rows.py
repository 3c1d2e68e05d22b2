"""The situations of a mission's execution: the database takes the rows of the table and no others."""

import itertools
import uuid
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from agency.enums import ExecutionStatus, LoopStatus
from agency.models import ConfiguredAgent, Execution, Mission, Thread
from agency.models.clock import Now

pytestmark = pytest.mark.django_db

NONE, DUE, CLAIMED, BOTH = "none", "due", "claimed", "both"
LOOP = {
    ("pending", "running", DUE),
    ("in_progress", "running", CLAIMED),
    ("in_progress", "running", DUE),
    ("in_progress", "waiting", DUE),
    ("interrupted", "running", NONE),
    ("interrupted", "blocked", NONE),
    ("finished", "completed", NONE),
    ("failed", "failed", NONE),
    ("cancelled", "cancelled", NONE),
}
ONE_SHOT = {(status, None, scheduling) for status, _, scheduling in LOOP}


@pytest.fixture
def mission(django_user_model: Any) -> Mission:
    owner = django_user_model.objects.create_user("ada")
    agent = ConfiguredAgent.objects.create(owner=owner, name="Clerk", agent_key="clerk")
    return Mission.objects.create(owner=owner, agent=agent, name="Orders", prompt="Sort.", loop_prompt="Go.")


def columns(status: str, loop_status: str | None, scheduling: str) -> dict[str, Any]:
    values: dict[str, Any] = {"status": status, "loop_status": loop_status}
    if scheduling in {DUE, BOTH}:
        values["next_run_at"] = Now()
    if scheduling in {CLAIMED, BOTH}:
        values |= {"claim_id": uuid.uuid4(), "claim_owner": "worker", "lease_until": Now(60)}
    if status in {"finished", "failed", "cancelled"}:
        values["finished_at"] = Now()
    if status == "failed":
        values["failure_code"] = "limit_reached" if loop_status == "limit_reached" else "unknown"
    if status == "cancelled":
        values["cancel_requested_at"] = Now()
    return values


def is_stored(mission: Mission, values: dict[str, Any]) -> bool:
    thread = Thread.objects.create(owner=mission.owner, agent=mission.agent)
    try:
        with transaction.atomic():
            Execution.objects.create(
                owner=mission.owner, agent=mission.agent, mission=mission, thread=thread, **values
            )
    except IntegrityError:
        return False
    return True


@pytest.mark.parametrize("status", [status.value for status in ExecutionStatus])
def test_every_combination_that_is_not_in_the_table_is_refused(mission: Mission, status: str) -> None:
    loops = [None, *(loop.value for loop in LoopStatus)]
    combinations = [(status, *rest) for rest in itertools.product(loops, (NONE, DUE, CLAIMED, BOTH))]
    legal = LOOP | ONE_SHOT | {("failed", "limit_reached", NONE)}
    stored = {one for one in combinations if is_stored(mission, columns(*one))}
    assert stored == {one for one in legal if one[0] == status}


def test_the_code_of_a_reached_limit_and_its_loop_status_go_together(mission: Mission) -> None:
    reached = columns("failed", "limit_reached", NONE)
    assert not is_stored(mission, {**reached, "failure_code": "unknown"})
    assert not is_stored(mission, {**columns("failed", "failed", NONE), "failure_code": "limit_reached"})


@pytest.mark.parametrize("claim", [NONE, CLAIMED])
def test_a_mission_is_no_definition_too(mission: Mission, claim: str) -> None:
    row = columns("in_progress", "running", DUE if claim == NONE else CLAIMED)
    assert not is_stored(mission, {**row, "execution_key": "report"})


def test_iterations_of_a_mission_stay_within_its_limit(mission: Mission) -> None:
    row = columns("in_progress", "running", DUE)
    assert is_stored(mission, {**row, "iteration": 120, "max_iterations": 120})
    assert not is_stored(mission, {**row, "iteration": 3, "max_iterations": 2})

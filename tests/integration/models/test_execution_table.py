"""The table of legal situations: the database itself refuses every row that it does not hold."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.models import CheckConstraint, Value

from agency.enums import TERMINAL_STATUSES, ExecutionStatus, LoopStatus
from agency.models import ConfiguredAgent, Execution, Thread
from agency.models.clock import Now, database_now

pytestmark = pytest.mark.django_db

NONE, DUE, CLAIMED, BOTH = "none", "due", "claimed", "both"
OPEN_SITUATIONS = {
    ("pending", DUE),
    ("in_progress", DUE),
    ("in_progress", CLAIMED),
    ("interrupted", NONE),
}
LEGAL = OPEN_SITUATIONS | {(status.value, NONE) for status in TERMINAL_STATUSES}

LOOPS = {
    "running": {("pending", DUE), ("in_progress", DUE), ("in_progress", CLAIMED), ("interrupted", NONE)},
    "waiting": {("in_progress", DUE)},
    "blocked": {("interrupted", NONE)},
    "completed": {("finished", NONE)},
    "failed": {("failed", NONE)},
    "cancelled": {("cancelled", NONE)},
    "limit_reached": set(),  # only with the failure code of the same name
}


@pytest.fixture
def agent(django_user_model: Any) -> ConfiguredAgent:
    owner = django_user_model.objects.create_user("ada")
    return ConfiguredAgent.objects.create(owner=owner, name="Clerk", agent_key="clerk")


def columns(status: str, scheduling: str, **more: Any) -> dict[str, Any]:
    """The columns of a situation, with everything else as it has to be."""
    values: dict[str, Any] = {"status": status, "execution_key": "report"}
    if scheduling in {DUE, BOTH}:
        values["next_run_at"] = Now()
    if scheduling in {CLAIMED, BOTH}:
        values |= {"claim_id": uuid.uuid4(), "claim_owner": "worker", "lease_until": Now(60)}
    if status in TERMINAL_STATUSES:
        values["finished_at"] = Now()
    if status == "failed":
        values["failure_code"] = "unknown"
    if status == "cancelled":
        values["cancel_requested_at"] = Now()
    return values | more


def is_stored(agent: ConfiguredAgent, values: dict[str, Any]) -> bool:
    thread = Thread.objects.create(owner=agent.owner, agent=agent)
    try:
        with transaction.atomic():
            Execution.objects.create(owner=agent.owner, agent=agent, thread=thread, **values)
    except IntegrityError:
        return False
    return True


def keeps_rule(name: str, values: dict[str, Any]) -> bool:
    """Whether the database finds the row in keeping with one rule alone.

    For loops: only missions have them, and a definition's row breaks another rule with any loop status.
    """
    (rule,) = [one for one in Execution._meta.constraints if one.name == name]
    assert isinstance(rule, CheckConstraint)
    row = {
        field.attname: Value(values.get(field.attname), output_field=field)
        for field in Execution._meta.concrete_fields
        if not isinstance(values.get(field.attname), Now)
    }
    return rule.condition.check(values | row)


@pytest.mark.parametrize("status", [status.value for status in ExecutionStatus])
def test_a_row_is_due_claimed_waiting_for_a_person_or_over_and_never_two_of_these(
    agent: ConfiguredAgent, status: str
):
    stored = {
        (status, scheduling)
        for scheduling in (NONE, DUE, CLAIMED, BOTH)
        if is_stored(agent, columns(status, scheduling))
    }
    assert stored == {situation for situation in LEGAL if situation[0] == status}


@pytest.mark.parametrize("loop_status", [loop.value for loop in LoopStatus])
def test_status_and_loop_status_agree(loop_status: str):
    kept = {
        situation
        for situation in LEGAL
        if keeps_rule("agency_execution_loop_agrees", columns(*situation, loop_status=loop_status))
    }
    assert kept == LOOPS[loop_status]


@pytest.mark.parametrize(
    ("loop_status", "code", "legal"),
    [
        ("limit_reached", "limit_reached", True),
        ("limit_reached", "unknown", False),
        ("failed", "limit_reached", False),
        ("failed", "unknown", True),
    ],
)
def test_limit_reached_is_a_failure_with_its_own_code(loop_status: str, code: str, legal: bool):
    row = columns("failed", NONE, loop_status=loop_status, failure_code=code)
    assert keeps_rule("agency_execution_loop_agrees", row) == legal


@pytest.mark.parametrize("loop_status", [loop.value for loop in LoopStatus])
def test_a_definition_has_no_loop(agent: ConfiguredAgent, loop_status: str):
    for situation in LOOPS[loop_status] or {("failed", NONE)}:
        code = {"failure_code": "limit_reached"} if loop_status == "limit_reached" else {}
        assert not is_stored(agent, columns(*situation, loop_status=loop_status, **code))


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "sleeping"},
        {"status": ""},
        {"status": "PENDING"},
        {"loop_status": "sleeping"},
        {"execution_key": None},
        {"execution_key": ""},
        {"claim_owner": "worker"},
        {"lease_until": Now()},
        {"finished_at": Now()},
        {"failure_code": "unknown"},
        {"max_iterations": 3},
        {"idempotency_key": "k"},
        {"idempotency_digest": "d"},
    ],
    ids=repr,
)
def test_a_pending_row_with_a_column_that_does_not_belong_is_refused(
    agent: ConfiguredAgent, wrong: dict[str, Any]
):
    assert is_stored(agent, columns("pending", DUE))
    assert not is_stored(agent, columns("pending", DUE) | wrong)


@pytest.mark.parametrize("missing", ["claim_id", "claim_owner", "lease_until"])
def test_a_claim_is_whole(agent: ConfiguredAgent, missing: str):
    row = columns("in_progress", CLAIMED)
    del row[missing]
    assert not is_stored(agent, row)


@pytest.mark.parametrize(
    ("status", "missing"),
    [
        ("finished", "finished_at"),
        ("failed", "finished_at"),
        ("cancelled", "finished_at"),
        ("failed", "failure_code"),
        ("cancelled", "cancel_requested_at"),
    ],
)
def test_a_terminal_row_says_when_and_why(agent: ConfiguredAgent, status: str, missing: str):
    row = columns(status, NONE)
    del row[missing]
    assert not is_stored(agent, row)


@pytest.mark.parametrize("status", ["finished", "cancelled"])
def test_only_a_failed_row_has_a_failure_code(agent: ConfiguredAgent, status: str):
    assert not is_stored(agent, columns(status, NONE, failure_code="unknown"))


@pytest.mark.parametrize(("iteration", "limit", "legal"), [(3, 3, True), (4, 3, False), (4, None, True)])
def test_iterations_stay_within_their_limit(iteration: int, limit: int | None, legal: bool):
    row = columns("pending", DUE, iteration=iteration, max_iterations=limit)
    assert keeps_rule("agency_execution_iteration_limit", row) == legal


def test_an_idempotency_key_is_used_once_by_an_owner(agent: ConfiguredAgent, django_user_model: Any):
    keyed = {"idempotency_key": "k", "idempotency_digest": "d"}
    assert is_stored(agent, columns("pending", DUE, **keyed))
    assert not is_stored(agent, columns("finished", NONE, **keyed))
    assert is_stored(agent, columns("pending", DUE))
    assert is_stored(agent, columns("pending", DUE))
    other = django_user_model.objects.create_user("bob")
    theirs = ConfiguredAgent.objects.create(owner=other, name="Clerk", agent_key="clerk")
    assert is_stored(theirs, columns("pending", DUE, **keyed))


def test_a_legal_row_cannot_be_updated_into_an_illegal_one(agent: ConfiguredAgent):
    assert is_stored(agent, columns("pending", DUE))
    with pytest.raises(IntegrityError), transaction.atomic():
        Execution.objects.update(status="finished")


def test_the_clock_of_the_rows_is_the_databases(agent: ConfiguredAgent):
    assert is_stored(agent, columns("pending", DUE))
    row = Execution.objects.get()
    assert abs(row.created_at - database_now()) < timedelta(minutes=1)
    assert Execution.objects.filter(next_run_at__lte=Now()).exists()
    assert not Execution.objects.filter(next_run_at__gt=Now()).exists()
    assert not Execution.objects.filter(next_run_at__lte=Now(-3600)).exists()

"""The doctor's look at the rows finds what no sequence of crashes may leave, and names the executions."""

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now
from typer.testing import CliRunner

from agency.cli.main import app
from agency.execution import invariants
from agency.models import ConfiguredAgent, Event, Execution, HumanRequest, Iteration, Message, Step
from tests.integration.rows import execution_row

pytestmark = pytest.mark.django_db
Break = Callable[[Execution], Any]


@pytest.fixture
def ended(agency_agent: Callable[..., ConfiguredAgent]) -> Execution:
    """A finished execution of two attempts, with everything that belongs to it."""
    row = execution_row(agency_agent("clerk"), status="finished", iteration=2, fence=2, claim_count=1)
    kinds = ["execution_started", "content", *["execution_attempt_completed"] * 2, "execution_finished"]
    for seq, kind in enumerate(kinds, 1):
        Event.objects.create(execution=row, seq=seq, kind=kind, iteration=max(seq - 2, 0))
    for n in (1, 2):
        Iteration.objects.create(
            execution=row,
            n=n,
            claim_id=uuid.uuid4(),
            fence=n,
            verdict="retry" if n == 1 else "passed",
            event_seq=n + 2,
            started_at=Now(),
        )
    Step.objects.create(
        execution=row, key="1:x:model", status="done", claim_id=uuid.uuid4(), event_seq=2, done_at=Now()
    )
    Message.objects.create(thread=row.thread, seq=2, role="user", event_seq=2)
    return row


def broken() -> list[str]:
    return [one.invariant for one in invariants.violations(cap=5)]


def without_checks(table: str, *names: str) -> None:
    """Let the rest of the test's transaction write what the constraints refuse."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA ignore_check_constraints = ON")
            return
        for name in names:
            cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")


@pytest.fixture
def unchecked() -> Any:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    without_checks("agency_execution", "agency_execution_one_situation", "agency_execution_claim_whole")
    yield
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA ignore_check_constraints = OFF")


def ask(row: Execution) -> None:
    HumanRequest.objects.create(
        execution=row, iteration=1, kind="question", message="Well?", expires_at=Now()
    )


def test_an_execution_that_waits_for_nobody_is_found(agency_agent: Callable[..., ConfiguredAgent]) -> None:
    row = execution_row(agency_agent("clerk"), status="interrupted")
    (only,) = invariants.violations(cap=5)
    assert (only.executions, "exactly one open request" in only.invariant) == ([str(row.pk)], True)
    ask(row)
    assert broken() == []


def update(**columns: Any) -> Break:
    return lambda row: Execution.objects.filter(pk=row.pk).update(**columns)


def test_what_the_runtime_writes_breaks_nothing(ended: Execution) -> None:
    assert broken() == []


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (update(next_run_at=Now()), "exactly one of due, claimed or waiting"),
        (update(claim_owner="somebody"), "a claim is whole"),
        (update(claim_count=6, fence=9), "up to the cap"),
        (update(claim_count=3), "never beyond the fence"),
        (update(iteration=3), "the ledger has the rows"),
        (lambda row: row.iterations.filter(n=1).delete(), "the ledger has the rows"),
        (lambda row: row.events.filter(seq=2).delete(), "the events are numbered"),
        (lambda row: row.events.filter(seq=1).delete(), "the events are numbered"),
        (update(fence=4), "each claim and each attempt has its own"),
        (lambda row: row.events.filter(seq=5).delete(), "one terminal event"),
        (update(generation=2), "one terminal event"),
        (lambda row: row.events.filter(seq=5).update(generation=2), "one terminal event"),
        (lambda row: row.events.filter(seq=5).update(kind="execution_cancelled"), "says how it ended"),
        (lambda row: row.events.filter(seq=3).update(kind="content"), "each ledger row has its event"),
        (lambda row: row.iterations.filter(n=1).update(fence=3), "the ledger's claims"),
        (lambda row: row.iterations.filter(n=2).update(fence=1), "the ledger's claims"),
        (lambda row: row.steps.update(event_seq=F("event_seq") + 90), "each journal entry's event"),
        (lambda row: row.thread.messages.update(event_seq=91), "each message's event"),
        (lambda row: ask(row), "exactly one open request"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_each_damage_is_found_and_its_execution_named(ended: Execution, damage: Break, word: str) -> None:
    damage(ended)
    found = [one for one in invariants.violations(cap=5) if word in one.invariant]
    assert [(one.count, one.executions) for one in found] == [(1, [str(ended.pk)])]


@pytest.mark.postgres_only
def test_events_and_steps_of_no_execution_are_found(ended: Execution) -> None:
    nobody = uuid.uuid4()
    ended.events.filter(seq=5).update(execution_id=nobody)
    ended.steps.update(execution_id=nobody)
    (found,) = [one for one in invariants.violations(cap=5) if "is of an execution" in one.invariant]
    assert found.executions == [str(nobody)]


def test_many_are_counted_and_the_first_named(agency_agent: Callable[..., ConfiguredAgent]) -> None:
    agent = agency_agent("clerk")
    for _ in range(invariants.SHOWN + 3):
        execution_row(agent, fence=1)
    (only,) = invariants.violations(cap=5)
    assert (only.count, len(only.executions)) == (invariants.SHOWN + 3, invariants.SHOWN)
    assert str(only).endswith("and 3 more")


@pytest.mark.parametrize(("options", "lost"), [([], 0), (["--json"], 0), ([], 1), (["--json"], 1)])
def test_the_command_says_each_invariant_and_exits_by_the_worst(
    ended: Execution, options: list[str], lost: int
) -> None:
    if lost:
        ended.events.filter(seq=2).delete()
    said = CliRunner().invoke(app, ["doctor", "--invariants", *options])
    assert said.exit_code == lost
    if options:
        findings = json.loads(said.stdout)
        assert len(findings) == len(invariants.invariants())
        assert all(finding["ok"] for finding in findings) is not bool(lost)
    assert (str(ended.pk) in said.stdout) is bool(lost)

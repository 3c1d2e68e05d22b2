"""Enum, column and CHECK constraint hold the same words, and the database refuses every other."""

import uuid
from enum import StrEnum
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.models import CheckConstraint, Model

from agency.enums import (
    TERMINAL_EVENTS,
    TERMINAL_STATUSES,
    Effect,
    EventKind,
    ExecutionStatus,
    HumanDecision,
    HumanRequestKind,
    HumanRequestStatus,
    LoopStatus,
    MessageRole,
    StepStatus,
    Verdict,
)
from agency.models import (
    ConfiguredAgent,
    Event,
    Execution,
    HumanRequest,
    HumanRequestItem,
    Iteration,
    Message,
    Step,
)
from agency.models.clock import Now
from tests.integration.rows import execution_row

pytestmark = pytest.mark.django_db

WORDS: list[tuple[type[Model], str, type[StrEnum], str]] = [
    (Execution, "status", ExecutionStatus, "agency_execution_status"),
    (Execution, "loop_status", LoopStatus, "agency_execution_loop_status"),
    (Event, "kind", EventKind, "agency_event_kind"),
    (Iteration, "verdict", Verdict, "agency_iteration_verdict"),
    (Step, "status", StepStatus, "agency_step_status"),
    (Step, "effect", Effect, "agency_step_effect"),
    (Message, "role", MessageRole, "agency_message_role"),
    (HumanRequest, "kind", HumanRequestKind, "agency_request_kind"),
    (HumanRequest, "status", HumanRequestStatus, "agency_request_status"),
    (HumanRequestItem, "kind", HumanRequestKind, "agency_request_item_kind"),
    (HumanRequestItem, "decision", HumanDecision, "agency_request_item_decision"),
]
IDS = [f"{model.__name__}.{column}" for model, column, _, _ in WORDS]


@pytest.fixture
def execution(django_user_model: Any) -> Execution:
    owner = django_user_model.objects.create_user("ada")
    agent = ConfiguredAgent.objects.create(owner=owner, name="Clerk", agent_key="clerk")
    return execution_row(agent)


@pytest.mark.parametrize(("model", "column", "enum", "rule"), WORDS, ids=IDS)
def test_a_column_takes_every_word_of_its_enum_and_no_other(
    model: type[Model], column: str, enum: type[StrEnum], rule: str
):
    (check,) = [one for one in model._meta.constraints if one.name == rule]
    assert isinstance(check, CheckConstraint)
    for word in enum:
        assert check.condition.check({column: word.value})
    for other in ("", "nonsense", enum(next(iter(enum))).value.upper()):
        assert not check.condition.check({column: other})


@pytest.mark.parametrize(("model", "column", "enum", "rule"), WORDS, ids=IDS)
def test_a_column_is_wide_enough_for_its_words(
    model: type[Model], column: str, enum: type[StrEnum], rule: str
):
    assert (model._meta.get_field(column).max_length or 0) >= max(len(word) for word in enum)


def test_the_terminal_words_are_words():
    assert {"finished", "failed", "cancelled"} == TERMINAL_STATUSES
    assert {kind.value.removeprefix("execution_") for kind in TERMINAL_EVENTS} == TERMINAL_STATUSES
    assert all(status.is_terminal == (status in TERMINAL_STATUSES) for status in ExecutionStatus)


def refused(model: Any, **values: Any) -> bool:
    try:
        with transaction.atomic():
            model.objects.create(**values)
    except IntegrityError:
        return True
    return False


def test_an_event_number_is_used_once_and_starts_at_one(execution: Execution):
    assert not refused(Event, execution=execution, seq=1)
    assert refused(Event, execution=execution, seq=1)
    assert refused(Event, execution=execution, seq=0)


@pytest.mark.parametrize("second", sorted(TERMINAL_EVENTS))
def test_a_generation_has_one_terminal_event(execution: Execution, second: EventKind):
    assert not refused(Event, execution=execution, seq=1, kind=EventKind.FINISHED.value)
    assert refused(Event, execution=execution, seq=2, kind=second.value)
    assert not refused(Event, execution=execution, seq=3, kind=EventKind.CONTENT.value)
    assert not refused(Event, execution=execution, seq=4, kind=second.value, generation=2)


def attempt(execution: Execution, n: int) -> dict[str, Any]:
    return {
        "execution": execution,
        "n": n,
        "claim_id": uuid.uuid4(),
        "fence": 1,
        "verdict": Verdict.PASSED.value,
        "event_seq": 1,
        "started_at": Now(),
    }


def test_an_attempt_is_committed_once_and_counted_from_one(execution: Execution):
    assert not refused(Iteration, **attempt(execution, 1))
    assert refused(Iteration, **attempt(execution, 1))
    assert refused(Iteration, **attempt(execution, 0))


def test_a_journal_entry_is_written_once_and_says_when_it_was_done(execution: Execution):
    entry = {"execution": execution, "key": "1:1:user", "claim_id": uuid.uuid4()}
    assert not refused(Step, **entry, status="intent")
    assert refused(Step, **entry, status="intent")
    entry["key"] = "1:2:model"
    assert refused(Step, **entry, status="done")
    assert refused(Step, **entry, status="intent", done_at=Now())
    assert not refused(Step, **entry, status="done", done_at=Now())


def test_a_message_number_is_used_once_in_a_thread(execution: Execution):
    assert not refused(Message, thread=execution.thread, seq=1, role="user")
    assert refused(Message, thread=execution.thread, seq=1, role="user")


def test_an_agent_has_a_key_and_a_name_that_its_owner_uses_once(execution: Execution, django_user_model: Any):
    owner = execution.owner
    assert refused(ConfiguredAgent, owner=owner, name="Clerk", agent_key="clerk")
    assert refused(ConfiguredAgent, owner=owner, name="", agent_key="clerk")
    assert refused(ConfiguredAgent, owner=owner, name="Other", agent_key="")
    other = django_user_model.objects.create_user("bob")
    assert not refused(ConfiguredAgent, owner=other, name="Clerk", agent_key="clerk")

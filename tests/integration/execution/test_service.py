"""Orders: what is stored of them, what is refused, and what an idempotency key promises."""

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import close_old_connections, connection, transaction

from agency.enums import ExecutionStatus
from agency.errors import ConfigurationError, IdempotencyConflict, InvalidInput, UnknownDefinition
from agency.execution import ExecutionInputType, registry, service, signals
from agency.execution.order import KEY_LENGTH
from agency.models import ConfiguredAgent, Execution, Thread
from agency.models.clock import database_now
from tests.integration.rows import execution_row
from tests.project.executions import CountWords, ShelveBooks, Summarise, Text

pytestmark = pytest.mark.django_db
TEXT = {"text": "one two three"}


@pytest.fixture
def ada(django_user_model: Any) -> Any:
    return django_user_model.objects.create_user("ada")


@pytest.fixture
def clerk(ada: Any) -> ConfiguredAgent:
    return ConfiguredAgent.objects.create(
        owner=ada, name="Clerk", agent_key="clerk", model="scripted:x", prompt_variables={"office": "A"}
    )


@contextmanager
def due() -> Iterator[list[tuple[str, int]]]:
    """The executions that are announced as due in the block."""
    heard: list[tuple[str, int]] = []

    def listen(execution_id: str, expected_iteration: int, **_: Any) -> None:
        heard.append((execution_id, expected_iteration))

    signals.execution_due.connect(listen)
    try:
        yield heard
    finally:
        signals.execution_due.disconnect(listen)


def errors(excinfo: pytest.ExceptionInfo[InvalidInput]) -> dict[str, str]:
    return {error["path"]: error["message"] for error in excinfo.value.errors}


def test_an_order_is_stored_as_a_pending_execution_that_is_due_at_once(ada: Any, clerk: ConfiguredAgent):
    with due() as heard:
        submission = service.submit(CountWords, clerk, TEXT)
    execution = Execution.objects.get(pk=submission.execution.pk)
    assert submission.created
    assert (execution.status, execution.execution_key) == ("pending", "count-words")
    assert (execution.owner, execution.agent, execution.iteration) == (ada, clerk, 0)
    assert execution.next_run_at <= database_now()
    assert submission.execution.next_run_at == execution.next_run_at
    assert execution.input == {"text": "one two three", "language": "en"}
    assert (execution.thread.owner, execution.thread.agent) == (ada, clerk)
    assert execution.thread.title == "Count words"
    assert heard == [(str(execution.pk), 1)]


def test_a_key_or_an_instance_will_do_as_well(clerk: ConfiguredAgent):
    by_key = service.submit("count-words", clerk, TEXT).execution
    by_instance = CountWords.submit(clerk, Text(**TEXT))
    assert by_key.input == by_instance.input


def test_a_definition_without_fields_takes_an_empty_object(ada: Any):
    librarian = ConfiguredAgent.objects.create(owner=ada, name="Lib", agent_key="librarian")
    assert service.submit(ShelveBooks, librarian, {}).execution.input == {}


def test_another_owner_can_be_named(django_user_model: Any, clerk: ConfiguredAgent):
    bob = django_user_model.objects.create_user("bob")
    execution = service.submit(CountWords, clerk, TEXT, owner=bob).execution
    assert (execution.owner, execution.thread.owner) == (bob, bob)


def test_the_configuration_is_kept_as_it_was(clerk: ConfiguredAgent):
    first = service.submit(CountWords, clerk, TEXT).execution
    again = service.submit(CountWords, clerk, TEXT).execution
    clerk.model = "scripted:y"
    clerk.save()
    later = service.submit(CountWords, clerk, TEXT).execution
    first.refresh_from_db()
    assert first.config == {
        "version": 1,
        "agent": {
            "agent_key": "clerk",
            "name": "Clerk",
            "model": "scripted:x",
            "prompt_variables": {"office": "A"},
            "prompt_override": None,
            "tool_settings": {},
            "limits": {},
        },
        "definition": {"execution_key": "count-words", "name": "Count words", "max_retries": 2},
    }
    assert first.config_hash == again.config_hash != later.config_hash
    assert len(first.config_hash) == 64


@pytest.mark.parametrize(
    ("given", "path", "said"),
    [
        ({}, "input.text", "Field required"),
        ({"text": ""}, "input.text", "at least 1"),
        ({"text": 3}, "input.text", "string"),
        ({"text": "a", "colour": "red"}, "input.colour", "not permitted"),
        ([], "input", "must be an object"),
        ("text", "input", "must be an object"),
        (None, "input", "must be an object"),
    ],
)
def test_input_that_does_not_fit_names_the_path_and_stores_nothing(
    clerk: ConfiguredAgent, given: Any, path: str, said: str
):
    with due() as heard, pytest.raises(InvalidInput) as invalid:
        service.submit(CountWords, clerk, given)
    assert said in errors(invalid)[path]
    assert path in str(invalid.value)
    assert (Execution.objects.count(), Thread.objects.count(), heard) == (0, 0, [])


def test_every_fault_of_an_input_is_named(clerk: ConfiguredAgent):
    with pytest.raises(InvalidInput) as invalid:
        service.submit(CountWords, clerk, {"language": 3, "colour": 1})
    assert set(errors(invalid)) == {"input.text", "input.language", "input.colour"}


def test_text_that_no_database_could_store_is_cleaned(clerk: ConfiguredAgent):
    execution = service.submit(CountWords, clerk, {"text": "a\x00b"}).execution
    execution.refresh_from_db()
    assert execution.input["text"] == "ab"


class Anything(ExecutionInputType):
    what: Any = None


class Take(ShelveBooks):
    EXECUTION_KEY = "take"
    NAME = "Take"
    INPUT_TYPE = Anything


@pytest.mark.parametrize("depth", [101, 400, 900])
def test_input_nested_too_deeply_is_refused(ada: Any, depth: int):
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    librarian = ConfiguredAgent.objects.create(owner=ada, name="L", agent_key="librarian")
    with registry.isolated():
        registry.register(Take)
        with pytest.raises(InvalidInput) as refused:
            service.submit(Take, librarian, {"what": value})
    assert errors(refused) == {"input": "is nested more than 100 deep"}


def test_an_instance_of_another_input_type_is_refused(clerk: ConfiguredAgent):
    class Other(ExecutionInputType):
        pass

    with pytest.raises(InvalidInput, match="Other, not a Text"):
        service.submit(CountWords, clerk, Other())


def test_an_agent_of_another_type_is_refused(clerk: ConfiguredAgent):
    with pytest.raises(InvalidInput) as invalid:
        service.submit(ShelveBooks, clerk, {})
    assert "'clerk'" in errors(invalid)["agent"]
    assert "'librarian'" in errors(invalid)["agent"]


def test_an_unknown_definition_is_refused(clerk: ConfiguredAgent):
    with pytest.raises(UnknownDefinition) as unknown:
        service.submit("nothing", clerk, {})
    assert "count-words" in errors(unknown)["execution_key"]
    with pytest.raises(ConfigurationError, match="not registered"):
        service.submit(type("Fake", (CountWords,), {}), clerk, TEXT)


def test_the_same_key_and_order_give_the_same_execution(clerk: ConfiguredAgent):
    first = service.submit(CountWords, clerk, TEXT, idempotency_key="k1")
    with due() as heard:
        second = service.submit(CountWords, clerk, {"language": "en", **TEXT}, idempotency_key="k1")
    assert (first.created, second.created) == (True, False)
    assert first.execution == second.execution
    assert heard == []
    assert Execution.objects.count() == 1


@pytest.mark.parametrize("changed", ["input", "definition", "agent"])
def test_the_same_key_with_another_order_is_a_conflict(ada: Any, clerk: ConfiguredAgent, changed: str):
    first = service.submit(CountWords, clerk, TEXT, idempotency_key="k1").execution
    other = ConfiguredAgent.objects.create(owner=ada, name="Other", agent_key="clerk")
    with pytest.raises(IdempotencyConflict) as conflict:
        service.submit(
            Summarise if changed == "definition" else CountWords,
            other if changed == "agent" else clerk,
            {"text": "other"} if changed == "input" else TEXT,
            idempotency_key="k1",
        )
    assert conflict.value.execution_id == str(first.pk)
    assert Execution.objects.count() == 1


def test_a_key_belongs_to_its_owner(django_user_model: Any, clerk: ConfiguredAgent):
    bob = django_user_model.objects.create_user("bob")
    first = service.submit(CountWords, clerk, TEXT, idempotency_key="k1")
    second = service.submit(CountWords, clerk, TEXT, idempotency_key="k1", owner=bob)
    assert second.created
    assert first.execution != second.execution


@pytest.mark.parametrize("key", ["", "  ", "x" * (KEY_LENGTH + 1), "a\nb", "a\x00"])
def test_a_key_that_is_none_is_refused(clerk: ConfiguredAgent, key: str):
    with pytest.raises(InvalidInput) as invalid:
        service.submit(CountWords, clerk, TEXT, idempotency_key=key)
    assert "idempotency_key" in errors(invalid)


@pytest.mark.django_db(transaction=True)
def test_callers_that_race_with_one_key_get_one_execution(clerk: ConfiguredAgent):
    start = threading.Barrier(4)
    got: list[service.Submission] = []

    def order() -> None:
        try:
            start.wait()
            got.append(service.submit(CountWords, clerk, TEXT, idempotency_key="race"))
        finally:
            connection.close()

    threads = [threading.Thread(target=order) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    close_old_connections()
    assert len({one.execution.pk for one in got}) == 1
    assert sorted(one.created for one in got) == [False, False, False, True]
    assert Execution.objects.count() == Thread.objects.count() == 1


def test_an_order_shares_the_fate_of_the_callers_transaction(clerk: ConfiguredAgent):
    with suppress(KeyError), transaction.atomic():
        service.submit(CountWords, clerk, TEXT)
        raise KeyError
    assert Execution.objects.count() == 0


def test_a_batch_is_one_execution_for_each_input_in_order(clerk: ConfiguredAgent):
    with due() as heard:
        batch = service.submit_batch(CountWords, clerk, [{"text": str(n)} for n in range(5)])
    assert [one.execution.input["text"] for one in batch] == list("01234")
    assert all(one.created for one in batch)
    (batch_id,) = {one.execution.batch_id for one in batch}
    assert isinstance(batch_id, uuid.UUID)
    assert heard == [(str(one.execution.pk), 1) for one in batch]


def test_a_batch_with_a_fault_stores_nothing_and_names_each_place(clerk: ConfiguredAgent):
    with pytest.raises(InvalidInput) as invalid:
        service.submit_batch(CountWords, clerk, [TEXT, {}, TEXT, {"text": "a", "x": 1}, 7])
    assert set(errors(invalid)) == {"inputs[1].text", "inputs[3].x", "inputs[4]"}
    assert Execution.objects.count() == 0


@pytest.mark.parametrize("inputs", [[], {}, None, "text"])
def test_a_batch_needs_inputs(clerk: ConfiguredAgent, inputs: Any):
    with pytest.raises(InvalidInput) as invalid:
        service.submit_batch(CountWords, clerk, inputs)
    assert "inputs" in errors(invalid)


def test_the_same_key_and_batch_give_the_same_executions(clerk: ConfiguredAgent):
    inputs = [{"text": "a"}, {"text": "b"}, {"text": "a"}]
    first = service.submit_batch(CountWords, clerk, inputs, idempotency_key="k")
    second = service.submit_batch(CountWords, clerk, inputs, idempotency_key="k")
    assert [one.execution for one in first] == [one.execution for one in second]
    assert len({one.execution.pk for one in first}) == 3
    assert not any(one.created for one in second)
    assert {one.execution.batch_id for one in first} == {one.execution.batch_id for one in second}


@pytest.mark.parametrize(
    "inputs",
    [[{"text": "a"}], [{"text": "a"}, {"text": "b"}, {"text": "c"}], [{"text": "b"}, {"text": "a"}]],
    ids=["shorter", "longer", "other order"],
)
def test_the_same_key_with_another_batch_is_a_conflict_and_stores_nothing(
    clerk: ConfiguredAgent, inputs: list[Any]
):
    service.submit_batch(CountWords, clerk, [{"text": "a"}, {"text": "b"}], idempotency_key="k")
    with pytest.raises(IdempotencyConflict):
        service.submit_batch(CountWords, clerk, inputs, idempotency_key="k")
    assert Execution.objects.count() == 2


def test_an_agent_knows_what_it_can_be_asked(clerk: ConfiguredAgent):
    assert service.definitions_of(clerk) == [CountWords, Summarise]


def test_what_nobody_runs_is_cancelled_at_once(clerk: ConfiguredAgent):
    execution = service.submit(CountWords, clerk, TEXT).execution
    assert service.request_cancel(execution) is ExecutionStatus.CANCELLED
    execution.refresh_from_db()
    assert (execution.status, execution.next_run_at) == ("cancelled", None)
    assert execution.cancel_requested_at is not None


def test_what_runs_is_asked_to_stop(clerk: ConfiguredAgent):
    execution = execution_row(
        clerk,
        status="in_progress",
        claim_id=uuid.uuid4(),
        claim_owner="worker",
        lease_until=database_now() + timedelta(minutes=1),
    )
    assert service.request_cancel(execution) is ExecutionStatus.IN_PROGRESS
    execution.refresh_from_db()
    asked = execution.cancel_requested_at
    assert asked is not None
    service.request_cancel(execution)
    execution.refresh_from_db()
    assert execution.cancel_requested_at == asked


@pytest.mark.parametrize("status", ["finished", "failed", "cancelled"])
def test_what_has_ended_stays_as_it_is(clerk: ConfiguredAgent, status: str):
    execution = execution_row(clerk, status=status)
    before = execution.cancel_requested_at
    assert service.request_cancel(execution) == status
    execution.refresh_from_db()
    assert (execution.status, execution.cancel_requested_at) == (status, before)

"""What stops a run: a cancel, a deadline, a lost claim, a worker that ends, a model that is away."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.db.backends.signals import connection_created

from agency.agent import ModelUnavailable
from agency.agent.stopping import stop_signal
from agency.execution import BaseAgenticExecutionDefinition, Conversation, registry, service
from agency.models import ConfiguredAgent, Execution
from agency.models.clock import Now
from agency.runtime import beat as beats
from agency.runtime import sweep
from agency.runtime.beat import Beat
from agency.runtime.body import Outcome, run_claimed
from agency.runtime.claim import claim
from agency.runtime.wiring import use_client
from agency.testing import run_until_parked
from tests.faults.processes import eventually
from tests.integration.runtime.conftest import Submit


class Running:
    """A claimed execution that runs on a thread of its own."""

    def __init__(self, execution: Execution) -> None:
        claimed = claim(execution.pk)
        assert claimed is not None
        self.claim = claimed
        self.outcome: Outcome | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.outcome = run_claimed(self.claim)
        finally:
            connections.close_all()

    def ended(self) -> Outcome | None:
        self._thread.join(60)
        return self.outcome


@pytest.fixture
def own_beat(settings: Any) -> Iterator[Callable[..., Beat]]:
    """A quick beat of the test's own, so that a drained one does not reach other tests."""
    settings.AGENCY = {"BEAT_SECONDS": 0.1, "LEASE_SECONDS": 60.0}
    beats._beats.clear()
    yield beats.beat
    beats._beats.clear()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("own_beat")
class TestWhileItRuns:
    def test_a_cancel_stops_a_tool_in_the_middle(self, submit: Submit, bill: Any) -> None:
        execution = submit("hang")
        running = Running(execution)
        eventually(lambda: any(line.startswith("hang") for line in bill()))
        service.request_cancel(execution)
        assert running.ended() is Outcome.CANCELLED
        execution.refresh_from_db()
        assert execution.status == "cancelled"
        assert execution.iterations.get().verdict == "cancelled"
        assert execution.usage["model_calls"] == 1

    def test_a_cancel_ends_it_though_the_model_goes_away_in_the_same_moment(self, submit: Submit) -> None:
        execution = submit()

        class Away:
            def generate(self, request: Any) -> Any:
                service.request_cancel(execution)
                is_stopped = stop_signal.get()
                assert is_stopped is not None
                eventually(is_stopped)
                raise ModelUnavailable("away")

        with use_client(Away()):
            assert Running(execution).ended() is Outcome.CANCELLED
        execution.refresh_from_db()
        assert execution.status == "cancelled"

    def test_a_passed_deadline_stops_it_and_says_so(self, submit: Submit, bill: Any) -> None:
        execution = submit("hang")
        running = Running(execution)
        eventually(lambda: any(line.startswith("hang") for line in bill()))
        Execution.objects.filter(pk=execution.pk).update(deadline_at=Now(-1))
        assert running.ended() is Outcome.FAILED
        execution.refresh_from_db()
        assert execution.failure_code == "deadline_exceeded"

    def test_a_lost_claim_stops_it_and_it_writes_nothing_more(self, submit: Submit, bill: Any) -> None:
        execution = submit("hang")
        running = Running(execution)
        eventually(lambda: any(line.startswith("hang") for line in bill()))
        Execution.objects.filter(pk=execution.pk).update(lease_until=Now(-1))
        thief = eventually(lambda: _take(execution))
        seq = Execution.objects.get(pk=execution.pk).event_seq
        assert running.ended() is Outcome.LOST
        execution.refresh_from_db()
        assert (execution.claim_id, execution.event_seq) == (thief.claim_id, seq)

    def test_the_beat_keeps_the_lease_of_a_run_that_takes_longer(self, submit: Submit, bill: Any) -> None:
        execution = submit("hang")
        running = Running(execution)
        execution.refresh_from_db()
        first = execution.lease_until

        def is_renewed() -> bool:
            execution.refresh_from_db()
            return execution.lease_until > first

        eventually(is_renewed)
        service.request_cancel(execution)
        assert running.ended() is Outcome.CANCELLED

    def test_one_thread_beats_for_claims_in_a_row_and_holds_no_connection_between_them(
        self, submit: Submit, own_beat: Callable[..., Beat]
    ) -> None:
        opened: list[Any] = []

        def listen(connection: Any, **_: Any) -> None:
            if threading.current_thread().name == "agency-beat":
                opened.append(connection)

        connection_created.connect(listen)
        try:
            claimed = claim(submit().pk)
            assert claimed is not None
            with own_beat().watching(claimed):
                thread = own_beat()._thread
                eventually(lambda: opened)
            eventually(lambda: opened[0].connection is None)
            with own_beat().watching(claimed):
                assert own_beat()._thread is thread
        finally:
            connection_created.disconnect(listen)
        eventually(lambda: own_beat()._thread is None)

    def test_a_beat_that_fails_is_tried_again_and_stops_no_run(self, submit: Submit, bill: Any) -> None:
        failures = [OperationalError("server closed the connection unexpectedly") for _ in range(3)]

        def fails(execute: Any, *call: Any) -> Any:
            if failures:
                raise failures.pop()
            return execute(*call)

        def listen(connection: Any, **_: Any) -> None:
            if threading.current_thread().name == "agency-beat":
                connection.execute_wrappers.append(fails)

        execution = submit("hang")
        connection_created.connect(listen)
        try:
            running = Running(execution)
            first = Execution.objects.get(pk=execution.pk).lease_until
            eventually(lambda: Execution.objects.get(pk=execution.pk).lease_until > first)
        finally:
            connection_created.disconnect(listen)
        assert failures == []
        assert running.outcome is None
        service.request_cancel(execution)
        assert running.ended() is Outcome.CANCELLED

    def test_a_worker_that_ends_gives_the_run_back_uncounted(
        self, submit: Submit, bill: Any, own_beat: Callable[..., Beat]
    ) -> None:
        execution = submit('hang; {"a": "done"}')
        running = Running(execution)
        eventually(lambda: any(line.startswith("hang") for line in bill()))
        own_beat().drain(grace=0.0)
        assert running.ended() is Outcome.RELEASED
        execution.refresh_from_db()
        assert (execution.claim_count, execution.claim_id) == (0, None)
        beats._beats.clear()
        assert run_until_parked(execution).status == "finished"


@pytest.mark.django_db(transaction=True)
@pytest.mark.postgres_only
class TestRowThatSomeoneElseLocks:
    """A caller's long transaction on one row is no reason to lose the others."""

    @pytest.mark.usefixtures("own_beat")
    def test_the_beat_renews_its_other_claims_and_keeps_the_locked_one(
        self, submit: Submit, bill: Any
    ) -> None:
        locked, other = submit("hang"), submit("hang")
        both = [Running(locked), Running(other)]
        eventually(lambda: sum(line.startswith("hang") for line in bill()) == 2)
        with transaction.atomic():
            Execution.objects.select_for_update().get(pk=locked.pk)
            first = Execution.objects.get(pk=other.pk).lease_until
            try:
                eventually(lambda: Execution.objects.get(pk=other.pk).lease_until > first)
            finally:
                service.request_cancel(locked)
        service.request_cancel(other)
        assert [running.ended() for running in both] == [Outcome.CANCELLED] * 2

    def test_the_sweep_passes_it_by_and_sees_to_the_others(self, submit: Submit) -> None:
        locked, other = submit(), submit()
        for execution in (locked, other):
            claim(execution.pk)
        Execution.objects.update(lease_until=Now(-2), deadline_at=Now(-1))

        def sweep_once() -> None:
            try:
                sweep.recover()
                sweep.close()
            finally:
                connections.close_all()

        thread = threading.Thread(target=sweep_once)
        with transaction.atomic():
            Execution.objects.select_for_update().get(pk=locked.pk)
            thread.start()
            thread.join(60)
            assert not thread.is_alive()
            assert Execution.objects.get(pk=other.pk).status == "failed"
        sweep.close()
        locked.refresh_from_db()
        assert locked.status == "failed"


def _take(execution: Execution) -> Any:
    Execution.objects.filter(pk=execution.pk).update(lease_until=Now(-1))
    return claim(execution.pk)


@pytest.mark.django_db
class TestModelThatIsAway:
    def test_the_run_is_put_back_and_goes_on_where_it_was(self, submit: Submit, scripted_llm: Any) -> None:
        llm = scripted_llm(ModelUnavailable("overloaded", retry_after=7.0), '{"a": "done"}')
        execution = submit("anything")
        claimed = claim(execution.pk)
        assert run_claimed(claimed) is Outcome.RELEASED
        execution.refresh_from_db()
        assert execution.claim_count == 0
        assert execution.metadata["model_outages"]["count"] == 1
        assert Execution.objects.filter(next_run_at__gt=Now(5), next_run_at__lte=Now(16)).exists()

        assert run_until_parked(execution).status == "finished"
        assert llm.remaining == 0

    def test_it_is_given_up_when_that_goes_on(self, submit: Submit, scripted_llm: Any, settings: Any) -> None:
        settings.AGENCY = {"MODEL_RETRIES": 2}
        llm = scripted_llm(ModelUnavailable("overloaded"), loop=True)
        execution = run_until_parked(submit("anything"))
        assert (execution.status, execution.failure_code) == ("failed", "runtime_error")
        assert "could not be reached 3 times" in execution.failure_summary
        assert len(llm.requests) == 3
        assert execution.iterations.get().verdict == "failed"

    def test_an_answer_between_failures_begins_the_count_anew(
        self, submit: Submit, scripted_llm: Any, settings: Any
    ) -> None:
        settings.AGENCY = {"MODEL_RETRIES": 2}
        away = ModelUnavailable("overloaded")
        scripted_llm(away, away, '{"a": 1}', away, away, '{"a": "done"}')
        assert run_until_parked(submit("anything")).status == "finished"


class Careless(BaseAgenticExecutionDefinition):
    EXECUTION_KEY = "fault-careless"
    AGENT_KEY = "fault-clerk"
    NAME = "Careless"
    VALIDATORS = []

    def execute(self, input_data: Any, conversation: Conversation) -> str:
        with transaction.atomic():
            return conversation.ask("anything")


@pytest.mark.django_db(transaction=True)
def test_a_model_is_never_called_inside_a_transaction(clerk: ConfiguredAgent, scripted_llm: Any) -> None:
    registry.register(Careless)
    llm = scripted_llm("x")
    execution = run_until_parked(service.submit("fault-careless", clerk, {}).execution)
    assert execution.failure_code == "runtime_error"
    assert "inside a database transaction" in execution.failure_summary
    assert llm.requests == []


@pytest.mark.django_db
def test_a_run_that_cannot_be_put_together_fails_with_a_sentence(submit: Submit, settings: Any) -> None:
    settings.AGENCY = {"LLM_CLIENT_FACTORY": "tests.faults.app.models.absent"}
    ended = run_until_parked(submit())
    assert (ended.status, ended.failure_code) == ("failed", "runtime_error")
    assert ended.failure_summary == "The run could not be put together: ImportError."


@pytest.mark.django_db
def test_a_database_that_goes_away_in_the_middle_fails_no_run(submit: Submit) -> None:
    execution = submit()
    claimed = claim(execution.pk)
    failures = iter([OperationalError("server closed the connection unexpectedly")])

    def once(execute: Any, *call: Any) -> Any:
        for failure in failures:
            raise failure
        return execute(*call)

    with connection.execute_wrapper(once):
        assert run_claimed(claimed) is Outcome.RELEASED
    execution.refresh_from_db()
    assert execution.claim_count == 0
    assert run_until_parked(execution).status == "finished"

"""What a provider in trouble does to runs: they are put back without a count, and nobody storms it."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction

from agency.agent import ModelUnavailable
from agency.agent.llm import LlmRequest, LlmResponse
from agency.agent.stopping import stop_signal
from agency.agent.testing import ScriptedLlm
from agency.errors import RunCancelled
from agency.models import Execution, ProviderGate
from agency.models.clock import Now
from agency.runtime import gate
from agency.runtime.body import Outcome, run_claimed
from agency.runtime.claim import claim
from agency.runtime.gate_rules import FAILURES_TO_SHUT
from agency.runtime.gated_client import GatedClient, GateShut
from agency.testing import run_until_parked
from tests.faults.processes import eventually
from tests.integration.runtime.conftest import Submit
from tests.integration.runtime.test_claim import in_threads

pytestmark = pytest.mark.django_db(transaction=True)
ASKED = LlmRequest()


@pytest.fixture(autouse=True)
def unknown_providers() -> Iterator[None]:
    gate._untroubled.clear()
    yield
    gate._untroubled.clear()


def away(**more: Any) -> ModelUnavailable:
    return ModelUnavailable("overloaded", **more)


def client(*script: Any, **more: Any) -> GatedClient:
    return GatedClient(ScriptedLlm(*script, **more), "openai")


def ask(asked: GatedClient) -> str:
    """What came of a call: the answer, `away` or `shut`."""
    try:
        return asked.generate(ASKED).text
    except ModelUnavailable:
        return "away"
    except GateShut:
        return "shut"


def open_again() -> None:
    ProviderGate.objects.filter(not_before__isnull=False).update(not_before=Now(-1))


def somebody_waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted)")
        return bool(cursor.fetchone()[0])


class TestClient:
    def test_a_provider_without_trouble_leaves_no_row(self) -> None:
        assert ask(client("fine")) == "fine"
        assert not ProviderGate.objects.exists()

    def test_after_failures_in_a_row_it_is_not_asked_and_the_run_is_given_back(self) -> None:
        llm = client(*[away()] * 9)
        said = [ask(llm) for _ in range(7)]
        assert said == ["away"] * FAILURES_TO_SHUT + ["shut"] * 2
        assert llm.remaining == 9 - FAILURES_TO_SHUT

    def test_an_answer_in_between_begins_the_count_anew(self) -> None:
        llm = client(away(), away(), away(), away(), "fine", away(), away(), away(), away(), "fine")
        assert [ask(llm) for _ in range(10)].count("shut") == 0

    def test_one_call_tries_it_and_opens_it_for_all(self) -> None:
        llm = client(*[away()] * 5, "fine", "fine")
        for _ in range(5):
            ask(llm)
        open_again()
        assert ask(llm) == "fine"
        assert not ProviderGate.objects.exists()
        assert ask(llm) == "fine"

    def test_of_many_that_come_when_it_may_be_tried_one_gets_through(self) -> None:
        ProviderGate.objects.create(provider="openai", failures=9, not_before=Now(-1))
        llm = client(*[away()] * 8)
        said: list[str] = []
        in_threads(8, lambda: said.append(ask(llm)))
        assert sorted(said) == ["away"] + ["shut"] * 7

    def test_a_failure_is_remembered_though_an_answer_forgets_the_gate_in_the_same_moment(self) -> None:
        ProviderGate.objects.create(provider="openai", failures=1)

        def fail() -> None:
            gate.failed("openai", retry_after=None, is_limit=False, is_probe=False)

        failing = threading.Thread(target=in_threads, args=(1, fail))
        with transaction.atomic():
            ProviderGate.objects.all().delete()
            failing.start()
            if connection.vendor == "postgresql":
                eventually(somebody_waits_for_a_lock)
        failing.join()
        assert ProviderGate.objects.get().failures == 1

    def test_a_rate_limit_shuts_it_at_once_for_as_long_as_it_asks(self) -> None:
        llm = client(away(retry_after=20.0, is_limit=True), "fine")
        assert [ask(llm), ask(llm)] == ["away", "shut"]
        left = gate.shut_for("openai")
        assert 18 < left <= 21

    def test_after_a_rate_limit_calls_keep_a_pace_and_can_be_stopped_while_they_wait(self) -> None:
        ProviderGate.objects.create(provider="openai", interval=0.9, next_call_at=Now(0.9))
        token = stop_signal.set(lambda: True)
        try:
            with pytest.raises(RunCancelled):
                client("fine").generate(ASKED)
        finally:
            stop_signal.reset(token)

    def test_a_stream_goes_through_the_gate_too(self) -> None:
        ProviderGate.objects.create(provider="openai", not_before=Now(30))

        class Streams:
            def generate(self, request: LlmRequest) -> LlmResponse:
                raise AssertionError("it is streamed")

            def stream(self, request: LlmRequest) -> Iterator[LlmResponse]:
                yield LlmResponse([])

        with pytest.raises(GateShut):
            list(GatedClient(Streams(), "openai").stream(ASKED))

    def test_time_limits_of_the_project_go_with_a_request_that_has_none(self, settings: Any) -> None:
        settings.AGENCY = {"MODEL_SECONDS": 7.0}
        llm = ScriptedLlm("fine", "fine")
        GatedClient(llm, "openai").generate(ASKED)
        GatedClient(llm, "openai").generate(LlmRequest(settings={"timeout": 3.0}))
        assert [request.settings["timeout"] for request in llm.requests] == [7.0, 3.0]
        assert ASKED.settings == {}


class TestRuns:
    def test_a_shut_gate_gives_a_run_back_without_counting_it(
        self, submit: Submit, scripted_llm: Any
    ) -> None:
        llm = scripted_llm('{"a": "done"}')
        execution = submit("anything")
        claimed = claim(execution.pk)
        assert claimed is not None
        ProviderGate.objects.create(provider=execution.provider, not_before=Now(30))
        assert run_claimed(claimed) is Outcome.RELEASED
        execution.refresh_from_db()
        assert (execution.claim_count, execution.metadata, llm.remaining) == (0, {}, 1)
        due = Execution.objects.filter(next_run_at__gt=Now(28), next_run_at__lte=Now(36))
        assert due.get() == execution
        assert run_until_parked(execution).status == "finished"

    def test_a_storm_of_runs_asks_a_dead_provider_five_times(self, submit: Submit, scripted_llm: Any) -> None:
        llm = scripted_llm(away(), loop=True)
        rows = [submit("anything") for _ in range(12)]
        for row in rows:
            if (claimed := claim(row.pk)) is not None:
                assert run_claimed(claimed) is Outcome.RELEASED
        assert len(llm.requests) == FAILURES_TO_SHUT
        assert claim() is None

    def test_answers_under_another_claim_begin_the_count_of_outages_anew(
        self, submit: Submit, scripted_llm: Any, settings: Any
    ) -> None:
        settings.AGENCY = {"MODEL_RETRIES": 1}
        scripted_llm(away(), '{"a": 1}', away(), '{"a": "done"}')
        execution = submit("anything")
        outcomes: list[Outcome] = []
        while not execution.is_terminal:
            claimed = claim(execution.pk, ignore_due=True)
            assert claimed is not None
            outcomes.append(run_claimed(claimed))
            execution.refresh_from_db()
        assert outcomes == [Outcome.RELEASED, Outcome.RELEASED, Outcome.FINISHED]
        assert execution.iteration == 2

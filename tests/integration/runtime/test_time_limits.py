"""A provider that goes silent, stalls or limits its rate, over real HTTP; an attempt that takes too long."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agency.agent import ModelUnavailable
from agency.agent.llm import LlmRequest
from agency.agent.providers import resolve_model
from agency.execution import service
from agency.models import ConfiguredAgent, Execution, ProviderGate
from agency.models.clock import Now
from agency.runtime import gate
from agency.runtime.body import Outcome, run_claimed
from agency.runtime.claim import claim
from agency.runtime.gated_client import GatedClient
from tests.integration.runtime.conftest import Submit
from tests.integration.runtime.test_stop import Running
from tests.unit.providers.wire import Wire, completion, serving

pytestmark = pytest.mark.django_db(transaction=True)
MODEL = "openai-compatible:test"


@pytest.fixture(autouse=True)
def unknown_providers() -> Iterator[None]:
    gate._untroubled.clear()
    yield
    gate._untroubled.clear()


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    with serving() as made:
        monkeypatch.setenv("AGENCY_MODEL_BASE_URL", made.url)
        assert resolve_model(MODEL).model  # its libraries take seconds to load, once
        yield made


@pytest.fixture
def errand(agency_agent: Callable[..., ConfiguredAgent], bill: Any) -> Execution:
    agent = agency_agent("fault-clerk", model=MODEL)
    return service.submit("fault-errand", agent, {"task": "anything", "word": "done"}).execution


def held_for(execution: Execution) -> tuple[Outcome, float]:
    claimed = claim(execution.pk)
    assert claimed is not None
    began = time.monotonic()
    return run_claimed(claimed), time.monotonic() - began


def test_a_provider_that_accepts_and_goes_silent_holds_no_worker_for_long(
    wire: Wire, errand: Execution, settings: Any
) -> None:
    settings.AGENCY = {"MODEL_SECONDS": 0.5}
    wire.reply({}, stall=True)
    outcome, seconds = held_for(errand)
    assert outcome is Outcome.RELEASED and seconds < 60
    errand.refresh_from_db()
    assert (errand.iteration, errand.claim_count) == (0, 0)
    assert Execution.objects.filter(pk=errand.pk, next_run_at__gt=Now()).exists()
    assert ProviderGate.objects.get(provider="openai-compatible").failures == 1


def test_a_stream_that_stalls_is_given_up_after_the_projects_limit(wire: Wire, settings: Any) -> None:
    settings.AGENCY = {"MODEL_CHUNK_SECONDS": 0.3, "MODEL_FIRST_SECONDS": 30.0}
    chunk = {"index": 0, "delta": {"content": "Hel"}}
    body = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "test", "choices": [chunk]}
    piece = f"data: {json.dumps(body)}\n\n".encode()
    wire.reply(piece, headers={"Content-Type": "text/event-stream"}, promised=100, stall=True)
    stream = GatedClient(resolve_model(MODEL), "openai-compatible").stream(LlmRequest())
    with pytest.raises(ModelUnavailable, match="stalled"):
        list(stream)


def test_a_rate_limit_over_http_shuts_the_gate_for_as_long_as_it_asks(wire: Wire, errand: Execution) -> None:
    wire.reply({"error": {"message": "slow down"}}, status=429, headers={"Retry-After": "200"})
    outcome, _ = held_for(errand)
    assert outcome is Outcome.RELEASED
    found = ProviderGate.objects.get(provider="openai-compatible")
    assert found.interval > 0
    assert 120 < gate.shut_for("openai-compatible") <= 201
    assert Execution.objects.filter(next_run_at__gt=Now(120)).get() == errand


def test_what_was_put_back_goes_on_where_it_was(wire: Wire, errand: Execution) -> None:
    wire.reply({"error": {"message": "busy"}}, status=503)
    assert held_for(errand)[0] is Outcome.RELEASED
    wire.replies[:] = []
    wire.reply(completion('{"a": "done"}'))
    Execution.objects.filter(pk=errand.pk).update(next_run_at=Now())
    assert held_for(errand)[0] is Outcome.FINISHED
    errand.refresh_from_db()
    assert errand.iteration == 1
    assert not ProviderGate.objects.exists()


def test_an_attempt_that_takes_too_long_ends_the_execution_and_says_so(
    submit: Submit, settings: Any, bill: Any
) -> None:
    settings.AGENCY = {"ATTEMPT_SECONDS": 0.5}
    execution = submit("hang")
    assert Running(execution).ended() is Outcome.FAILED
    execution.refresh_from_db()
    assert execution.failure_code == "deadline_exceeded"
    assert execution.failure_summary == "Attempt 1 ran out of its time."

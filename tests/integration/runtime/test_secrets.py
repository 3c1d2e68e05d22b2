"""What a run says in the project's logs holds no secret, whatever an error's message carries."""

from collections.abc import Iterator
from typing import Any

import pytest

from agency.agent import ModelUnavailable
from agency.execution import BaseAgenticExecutionDefinition, Conversation, registry, service
from agency.models import ConfiguredAgent
from agency.runtime import wiring
from agency.testing import run_until_parked
from tests.integration.runtime.conftest import Submit

pytestmark = pytest.mark.django_db
CANARY = "canary-4711-0815"


class Leaky(BaseAgenticExecutionDefinition):
    EXECUTION_KEY = "leaky"
    AGENT_KEY = "fault-clerk"
    NAME = "Leaky"

    def execute(self, input_data: Any, conversation: Conversation) -> str:
        raise ValueError(f"cannot log in with password={CANARY} at https://me:{CANARY}@example.org/")


@pytest.fixture(autouse=True)
def leaky() -> Iterator[None]:
    with registry.isolated():
        registry.register(Leaky)
        yield


def test_the_traceback_of_a_failed_definition_is_logged_without_them(
    clerk: ConfiguredAgent, caplog: pytest.LogCaptureFixture
) -> None:
    execution = run_until_parked(service.submit("leaky", clerk, {}).execution)
    assert execution.failure_code == "runtime_error"
    assert "Traceback" in caplog.text
    assert "password=[redacted]" in caplog.text
    assert CANARY not in caplog.text


def test_why_a_run_is_put_back_is_logged_without_them(
    submit: Submit, scripted_llm: Any, caplog: pytest.LogCaptureFixture
) -> None:
    scripted_llm(ModelUnavailable(f"no answer from https://me:{CANARY}@example.org/"), '{"a": "done"}')
    assert run_until_parked(submit("anything")).status == "finished"
    assert "no answer from" in caplog.text
    assert CANARY not in caplog.text


def test_a_run_that_cannot_be_put_together_is_logged_without_them(
    submit: Submit, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.AGENCY = {"LLM_CLIENT_FACTORY": f"{__name__}.no_client"}
    execution = run_until_parked(submit("anything"))
    assert execution.failure_summary == "The run could not be put together: KeyError."
    assert "Traceback" in caplog.text
    assert CANARY not in caplog.text


def no_client(model: str) -> wiring.LlmClient:
    raise KeyError(f"no client for api_key={CANARY}")

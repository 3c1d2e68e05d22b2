"""Secrets planted everywhere a run can meet them are in no row, no log line and no answer of the API."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps

from agency.agent import BaseAgent, ExecutionContext, Message, ModelRefused, ModelUnavailable, tool
from agency.agent.testing import call
from agency.execution import (
    BaseAgenticExecutionDefinition,
    BaseExecutionValidator,
    Conversation,
    ToolScratchpad,
    ValidatorFailureResponse,
    ValidatorResponse,
    registry,
    service,
)
from agency.models import ApiToken, Execution
from agency.testing import run_until_parked

pytestmark = pytest.mark.django_db
CANARY = "canary4711x0815y"
BY_SHAPE = (
    f"sk-live-{CANARY}",
    f"https://me:{CANARY}@example.org/",
    f"GET /v1?key={CANARY}",
    f"Authorization: Bearer {CANARY}",
    f"password={CANARY}",
    f"agency_{CANARY}0000000",
)
BY_NAME = {"api_key": CANARY, "nested": [{"Authorization": CANARY, "passwords": [CANARY]}]}
EVERYTHING = "; ".join(BY_SHAPE) + "\x00\ud800"


@tool(effect="read")
def leak(text: str, api_key: str, context: ExecutionContext, scratchpad: ToolScratchpad) -> dict[str, Any]:
    """Give secrets back and leave them everywhere."""
    context.state["kept"] = {"text": "; ".join(BY_SHAPE), **BY_NAME}
    scratchpad.record("seen", {"text": EVERYTHING, **BY_NAME})
    return {"text": EVERYTHING, **BY_NAME}


@tool
def fail(password: str) -> str:
    """Fail and say why."""
    raise ValueError(f"cannot connect: {EVERYTHING}")


@tool(requires_confirmation=True)
def delete(api_key: str, url: str) -> str:
    """Delete something."""
    return EVERYTHING


class Spy(BaseAgent):
    AGENT_KEY = "spy"
    NAME = "Spy"
    SYSTEM_PROMPT = "Find out."
    TOOLS = [leak, fail, delete]


class Tells(BaseExecutionValidator):
    def validate(self, response: str, execution_input: Any, tool_scratchpad: Any) -> ValidatorResponse:
        return ValidatorFailureResponse(f"Not so: {EVERYTHING}", retry_needed="again" not in response)


class Found(BaseAgenticExecutionDefinition):
    """Ends with the agent's answer."""

    EXECUTION_KEY = "found"
    AGENT_KEY = "spy"
    NAME = "Found"
    VALIDATORS = []

    def execute(self, input_data: Any, conversation: Conversation) -> str:
        return conversation.ask(f"Find out. {EVERYTHING}")


class Refuted(Found):
    EXECUTION_KEY = "refuted"
    NAME = "Refuted"
    VALIDATORS = [Tells]


class Broken(Found):
    EXECUTION_KEY = "broken"
    NAME = "Broken"

    def execute(self, input_data: Any, conversation: Conversation) -> str:
        raise RuntimeError(f"broken: {EVERYTHING}")


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OPENAI_API_KEY", f"sk-{CANARY}{CANARY}")
    with registry.isolated(empty=True):
        registry.register(Spy, Found, Refuted, Broken)
        yield


def said(text: str) -> Message:
    return Message(role="assistant", content=text)


ARGUMENTS = {"text": EVERYTHING, "api_key": CANARY}
SCRIPTS: dict[str, tuple[str, list[Any]]] = {
    "tools and answer": (
        "found",
        [
            [said(EVERYTHING), call("leak", "a", **ARGUMENTS), call("fail", "b", password=CANARY)],
            [call("leak", "c", **ARGUMENTS), call("nowhere", "d", **BY_NAME)],
            json.dumps({"found": "; ".join(BY_SHAPE), **BY_NAME}),
        ],
    ),
    "feedback and a failure": ("refuted", [EVERYTHING, f"again {EVERYTHING}"]),
    "an error of the definition": ("broken", []),
    "a provider that is away": ("found", [ModelUnavailable(EVERYTHING), "{}"]),
    "a provider that refuses": ("found", [ModelRefused(EVERYTHING)]),
    "a question to a person": (
        "found",
        [call("delete", "e", api_key=CANARY, url=f"https://me:{CANARY}@example.org/")],
    ),
}


@pytest.mark.parametrize(("key", "answers"), SCRIPTS.values(), ids=list(SCRIPTS))
def test_no_planted_secret_is_kept_logged_or_told(
    key: str,
    answers: list[Any],
    agency_agent: Any,
    scripted_llm: Any,
    client: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    scripted_llm(*answers)
    agent = agency_agent("spy")
    execution = run_until_parked(service.submit(key, agent, {}).execution)
    assert execution.status in {"finished", "failed", "interrupted"}
    assert execution.events.filter(kind="content").exists()

    told = [*everything_stored(), caplog.text, *everything_told(execution, client)]
    assert not [text for text in told if CANARY in text]
    assert not [text for text in told if "\x00" in text or "\ud800" in text]
    assert any("[redacted]" in text for text in told)


def everything_stored() -> list[str]:
    """A dump of every table of ours."""
    models = apps.get_app_config("agency").get_models()
    return [str(row) for model in models for row in model._default_manager.values()]


def everything_told(execution: Execution, client: Any) -> list[str]:
    _, secret = ApiToken.issue(execution.owner, "reader")
    paths = ["", "/events", "/trace"]
    answers = [
        client.get(f"/api/executions/{execution.pk}{path}", headers={"Authorization": f"Bearer {secret}"})
        for path in paths
    ]
    assert [answer.status_code for answer in answers] == [200] * len(paths)
    return [answer.content.decode() for answer in answers]

"""Helps projects to test their agents and definitions without a broker, a worker or a real model.

A pytest plugin (loaded by itself where agency is installed). Django is imported on use only, since
plugins load before its settings.
"""

import contextlib
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from agency.agent.testing import ScriptedLlm
    from agency.models import ConfiguredAgent, Execution


def run_until_parked(execution: "Execution | str | uuid.UUID") -> "Execution":
    """Run an execution here until it has ended or waits for a person; returns the row as it is then."""
    from agency.runtime.inline import run_until_parked as run

    return run(execution)


@pytest.fixture
def scripted_llm() -> "Iterator[Callable[..., ScriptedLlm]]":
    """`scripted_llm("answer", ...)`: every run of this test asks this script instead of a model.

    Takes what `agency.agent.testing.ScriptedLlm` takes and returns it, with its `requests`.
    """
    from agency.agent.testing import ScriptedLlm
    from agency.runtime.wiring import use_client

    with contextlib.ExitStack() as stack:

        def script(*answers: Any, **options: Any) -> ScriptedLlm:
            llm = ScriptedLlm(*answers, **options)
            stack.enter_context(use_client(llm))
            return llm

        yield script


@pytest.fixture
def agency_agent(db: None) -> "Callable[..., ConfiguredAgent]":
    """`agency_agent("agent-key", owner=None, **fields)`: a configured agent of a new owner, or of `owner`."""
    from agency.models import ConfiguredAgent

    def create(agent_key: str, owner: Any = None, **fields: Any) -> ConfiguredAgent:
        fields.setdefault("name", f"{agent_key} {uuid.uuid4().hex[:8]}")
        return ConfiguredAgent.objects.create(agent_key=agent_key, owner=owner or _user(), **fields)

    return create


def _user() -> Any:
    from django.contrib.auth import get_user_model

    model = get_user_model()
    return model.objects.create(**{model.USERNAME_FIELD: f"user-{uuid.uuid4().hex[:12]}"})

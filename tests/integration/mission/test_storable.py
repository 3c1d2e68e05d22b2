"""What a mission's models say is stored without secrets, and whatever it holds the mission goes on."""

import json
from typing import Any

import pytest
from django.db.models import Model as Row

from agency.models import ConfiguredAgent, Execution
from agency.testing import run_until_parked
from tests.integration.mission.scripted import Model, mission

pytestmark = pytest.mark.django_db
SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
DECISIONS: dict[str, dict[str, Any]] = {
    "complete": {"evidence": "It is done."},
    "failed": {},
    "continue": {"next_input": "Use X for it."},
    "blocked": {"required_input": {"question": "Is it X?", "kind": "choice", "choices": ["X", "no"]}},
    "wait": {"wait": {"signal": "stock", "what_for": "for X"}},
}


def saying(text: str, status: str) -> dict[str, Any]:
    """A decision that has `text` wherever a supervisor is free to write."""
    told = {"status": status, "summary": "sum X", "reason": "for X", **DECISIONS[status]}
    return json.loads(json.dumps(told).replace("X", json.dumps(text)[1:-1]))


def columns(row: Row, name: str) -> dict[str, str]:
    return {f"{name}.{one.name}": str(getattr(row, one.attname)) for one in row._meta.concrete_fields}


def leaks(execution: Execution) -> list[str]:
    """The columns that hold the secret."""
    stored = columns(execution, "execution")
    for related in ("iterations", "events", "human_requests"):
        for row in getattr(execution, related).all():
            stored |= columns(row, f"{related} {row.pk}")
    for row in execution.thread.messages.all():
        stored |= columns(row, f"message {row.pk}")
    return [name for name, value in stored.items() if SECRET in value]


def run(agent: ConfiguredAgent, model: Model, answer: str, *decisions: Any) -> Execution:
    model.answers, model.decisions = [answer], [*decisions]
    return run_until_parked(mission(agent, loop_prompt="Go.", max_iterations=1).dispatch())


def test_the_result_of_a_mission_holds_no_secret(agent: ConfiguredAgent, model: Model) -> None:
    model.answers = [f"The key is {SECRET}."]
    execution = run_until_parked(mission(agent).dispatch())
    assert execution.status == "finished"
    assert "The key is" in execution.result["output"]
    assert leaks(execution) == []


@pytest.mark.parametrize("status", DECISIONS)
def test_no_decision_leaves_a_secret_behind(agent: ConfiguredAgent, model: Model, status: str) -> None:
    execution = run(agent, model, "It is done.", saying(SECRET, status))
    assert execution.loop_decision["status"] == status
    assert leaks(execution) == []


def test_what_is_no_decision_is_kept_without_its_secrets(agent: ConfiguredAgent, model: Model) -> None:
    execution = run(agent, model, "Sorted.", *[f"It is {SECRET}"] * 2)
    assert execution.failure_code == "supervisor_invalid"
    assert "It is" in execution.loop_decision["raw"]
    assert leaks(execution) == []


@pytest.mark.parametrize("status", DECISIONS)
def test_a_decision_counts_though_it_holds_what_no_database_takes(
    agent: ConfiguredAgent, model: Model, status: str
) -> None:
    execution = run(agent, model, "It is done.", saying("a\0b", status))
    assert execution.failure_code in (None, "mission_failed", "limit_reached")
    assert execution.loop_decision["status"] == status

"""The API does what its OpenAPI document says, whatever is thrown at it (schemathesis, seeded)."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from agency.config.wsgi import application
from agency.mission import schedules
from agency.models import ApiToken, ConfiguredAgent, Mission
from tests.integration.rows import an_ask, execution_row, waiting_row

# Well-formed, and still refused: keys of nothing that is registered, cursors that are not ours.
REFUSED_FOR_THEIR_MEANING = {
    "POST /api/agents",
    "POST /api/executions",
    "POST /api/executions/batch",
    "GET /api/agents",
    "GET /api/executions",
    "GET /api/human-requests",
    "GET /api/missions",
    "POST /api/missions",
    "PATCH /api/missions/{mission_id}",
    "POST /api/missions/{mission_id}/dispatch",
    "POST /api/missions/{mission_id}/schedules",
    "PATCH /api/missions/{mission_id}/schedules/{schedule_id}",
    "POST /api/executions/{execution_id}/extend",
    "POST /api/executions/{execution_id}/resume",
    "POST /api/executions/{execution_id}/signals/{name}",
    "POST /api/human-requests/{request_id}/answer",
}
schema = schemathesis.openapi.from_wsgi("/api/openapi.json", application)


@pytest.fixture
def one_connection() -> Iterator[None]:
    """Requests keep to the test's connection and transaction, as those of Django's own test client do."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.fixture
def token(one_connection: None, user: Any, agent: ConfiguredAgent) -> str:
    """The token of a user who has an agent and some executions."""
    for status in ("pending", "finished", "failed"):
        execution_row(agent, status=status)
    waiting_row(agent, an_ask("pay", "mail"))
    mission = Mission.objects.create(owner=user, agent=agent, name="Orders", prompt="Sort.", loop_prompt="Go")
    mission.dispatch()
    schedules.create_schedule(mission, cron="0 8 * * *")
    return ApiToken.issue(user, "contract")[1]


@pytest.mark.slow
@schema.parametrize()
@settings(
    max_examples=20,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_the_api_keeps_its_contract(case: Any, token: str) -> None:
    refusable = case.operation.label in REFUSED_FOR_THEIR_MEANING
    case.call_and_validate(
        headers={"Authorization": f"Bearer {token}"},
        excluded_checks=[positive_data_acceptance] if refusable else [],
    )

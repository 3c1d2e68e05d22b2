"""What the API's tests share: users with tokens, clients, an agent and executions in known states."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from agency.models import ApiToken, ConfiguredAgent, Execution
from tests.integration.rows import execution_row


class ApiClient:
    """Django's test client with a bearer token, JSON in and JSON out."""

    def __init__(self, secret: str | None) -> None:
        self.client = Client(raise_request_exception=False)
        self.headers = {"Authorization": f"Bearer {secret}"} if secret else {}

    def get(self, path: str, **query: Any) -> Any:
        return self.client.get(f"/api{path}", query, headers=self.headers)

    def post(self, path: str, body: Any = None, key: str | None = None) -> Any:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = self.headers | ({"Idempotency-Key": key} if key else {})
        return self.client.post(f"/api{path}", raw, content_type="application/json", headers=headers)

    def patch(self, path: str, body: Any) -> Any:
        raw = json.dumps(body).encode()
        return self.client.patch(f"/api{path}", raw, content_type="application/json", headers=self.headers)

    def delete(self, path: str) -> Any:
        return self.client.delete(f"/api{path}", headers=self.headers)


@pytest.fixture
def user(django_user_model: Any, db: None) -> Any:
    return django_user_model.objects.create_user("ada")


@pytest.fixture
def other_user(django_user_model: Any, db: None) -> Any:
    return django_user_model.objects.create_user("bob")


@pytest.fixture
def api(user: Any) -> ApiClient:
    return ApiClient(ApiToken.issue(user, "tests")[1])


@pytest.fixture
def other_api(other_user: Any) -> ApiClient:
    return ApiClient(ApiToken.issue(other_user, "tests")[1])


@pytest.fixture
def anonymous() -> ApiClient:
    return ApiClient(None)


@pytest.fixture
def agent(user: Any) -> ConfiguredAgent:
    return ConfiguredAgent.objects.create(owner=user, name="Clerk", agent_key="clerk")


@pytest.fixture
def execution(agent: ConfiguredAgent) -> Callable[..., Execution]:
    """A factory of executions of `agent`, as a row in the wanted state."""
    return lambda **columns: execution_row(agent, **columns)

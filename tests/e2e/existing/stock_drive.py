"""A command: submits by a view, by the API and in a request that fails; prints what became of it."""

import json
import time
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand
from django.test import Client
from stock.views import OutOfStock

import agency
from agency.models import ApiToken, ConfiguredAgent, Execution

WITHIN = 90.0


class Command(BaseCommand):
    def handle(self, *args: Any, **options: Any) -> None:
        user, _ = get_user_model().objects.get_or_create(email="me@example.org")
        agent, _ = ConfiguredAgent.objects.get_or_create(owner=user, name="Clerk", agent_key="clerk")
        client = Client(headers={"host": "localhost"})
        by_view = client.get("/describe", {"text": "a chair"}).json()["id"]
        by_api = self._by_api(client, user, agent)
        before = Execution.objects.count()
        rolled_back = False
        try:
            client.get("/describe", {"text": "a chair", "fail": "1"})
        except OutOfStock:
            rolled_back = Execution.objects.count() == before
        ended = [self._ended(execution_id) for execution_id in (by_view, by_api)]
        print(json.dumps({"file": agency.__file__, "rolled_back": rolled_back, "ended": ended}))

    def _by_api(self, client: Client, user: Any, agent: ConfiguredAgent) -> str:
        _, secret = ApiToken.issue(user, "test")
        answer = client.post(
            "/agency/api/executions",
            {"agent": str(agent.id), "execution_key": "describe-product", "input": {"text": "a lamp"}},
            content_type="application/json",
            headers={"authorization": f"Bearer {secret}"},
        )
        return str(answer.json()["id"])

    def _ended(self, execution_id: str) -> list[Any]:
        until = time.monotonic() + WITHIN
        while time.monotonic() < until:
            row = Execution.objects.get(pk=execution_id)
            if row.is_terminal:
                return [row.status, row.output]
            time.sleep(0.05)
        return [row.status, "not in time"]

"""The one permission function: what you may not see does not exist for you."""

import uuid
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import AnonymousUser

from agency.human import requests
from agency.models import (
    ApiToken,
    Blob,
    ConfiguredAgent,
    Event,
    Execution,
    HumanRequest,
    HumanRequestItem,
    Iteration,
    Message,
    Mission,
    ProviderGate,
    Schedule,
    ScheduleSlot,
    Signal,
    Step,
    Thread,
    visible_to,
)
from agency.models.clock import Now
from tests.integration.rows import an_ask, execution_row

pytestmark = pytest.mark.django_db

NOBODYS = [ProviderGate]
"""What the machinery keeps for itself: no owner, and no interface lists it."""
MODELS = [
    ConfiguredAgent,
    Thread,
    Message,
    Execution,
    Iteration,
    Event,
    Step,
    Blob,
    ApiToken,
    HumanRequest,
    HumanRequestItem,
    Mission,
    Schedule,
    ScheduleSlot,
    Signal,
]


@pytest.fixture
def users(django_user_model: Any) -> dict[str, Any]:
    """Ada and Bob each with one row of every model, a superuser, and one whose account is closed."""
    create = django_user_model.objects.create_user
    made = {name: create(name) for name in ("ada", "bob", "gone")}
    made["root"] = django_user_model.objects.create_superuser("root")
    for name in ("ada", "bob", "gone"):
        _fill(made[name])
    made["gone"].is_active = False
    made["gone"].save()
    return made


def _fill(user: Any) -> None:
    agent = ConfiguredAgent.objects.create(owner=user, name="Clerk", agent_key="clerk")
    execution = execution_row(agent)
    claim = uuid.uuid4()
    Message.objects.create(thread=execution.thread, seq=1, role="user")
    Event.objects.create(execution=execution, seq=1)
    Blob.objects.create(execution=execution, sha256="ab" * 32, size=2, content="ab")
    Step.objects.create(execution=execution, key="k", status="intent", claim_id=claim)
    Iteration.objects.create(
        execution=execution, n=1, claim_id=claim, fence=1, verdict="passed", event_seq=1, started_at=Now()
    )
    request = requests.open_request(execution.pk, 1, an_ask(), 60.0)
    assert request.items.count() == 1
    mission = Mission.objects.create(owner=user, agent=agent, name="Tidy", prompt="Tidy up.")
    schedule = Schedule.objects.create(mission=mission, cron="0 7 * * *")
    ScheduleSlot.objects.create(schedule=schedule, slot_at=Now(), outcome="skipped")
    Signal.objects.create(execution=execution, name="go")
    ApiToken.issue(user, "laptop")


def test_every_model_is_covered_here():
    assert set(apps.get_app_config("agency").get_models()) == {*MODELS, *NOBODYS}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_rows_are_seen_by_their_owner_and_a_superuser_only(model: Any, users: dict[str, Any]):
    def seen(user: Any) -> set[Any]:
        return set(visible_to(user, model.objects.all()))

    everything = set(model.objects.all())
    assert len(everything) == 3
    assert len(seen(users["ada"])) == 1
    assert seen(users["ada"]) & seen(users["bob"]) == set()
    assert seen(users["root"]) == everything
    for nobody in (users["gone"], AnonymousUser(), None):
        assert seen(nobody) == set()


def test_a_filter_that_was_there_stays(users: dict[str, Any]):
    assert not visible_to(users["root"], Execution.objects.filter(status="failed")).exists()
    assert visible_to(users["ada"], Execution.objects.filter(status="pending")).count() == 1


def test_a_token_is_stored_as_a_digest_and_its_secret_shown_once(users: dict[str, Any]):
    token, secret = ApiToken.issue(users["ada"], "server")
    stored = ApiToken.objects.get(pk=token.pk)
    assert secret not in {str(value) for value in vars(stored).values()}
    assert secret.startswith(stored.hint)
    assert len(secret) > 40

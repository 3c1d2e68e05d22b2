"""The health checks: alive without the database, ready only with all of its tables."""

import sys

import pytest
from celery import Celery
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from agency.config import health
from agency.models import Execution
from agency.models.clock import Now
from tests.integration.rows import execution_row


@pytest.fixture(autouse=True)
def forgetful():
    """The process remembers that all is migrated; here it must look."""
    for memory in (health._migrated, health._seen):
        memory.clear()
    yield
    for memory in (health._migrated, health._seen):
        memory.clear()


def test_alive_asks_nothing_of_the_database(client):
    answer = client.get("/health/live")
    assert (answer.status_code, answer.json()) == (200, {"status": "live"})
    assert "no-store" in answer["Cache-Control"]


@pytest.mark.django_db
def test_ready_when_the_database_has_every_table(client):
    answer = client.get("/health/ready")
    queue = {"due": 0, "lag": 0.0, "later": 0, "claimed": 0}
    assert answer.status_code == 200
    assert answer.json() == {"status": "ready", "queue": queue, "broker": "none"}


@pytest.mark.django_db
def test_ready_tells_how_long_due_work_waits(client, agency_agent):
    execution_row(agency_agent("writer"))
    Execution.objects.update(next_run_at=Now(-30))
    queue = client.get("/health/ready").json()["queue"]
    assert (queue["due"], 30 <= queue["lag"] < 60) == (1, True)


@pytest.mark.django_db
def test_a_broker_that_is_away_is_told_and_makes_nothing_unready(client, settings, monkeypatch):
    nowhere = Celery("nowhere", broker="redis://127.0.0.1:1/0", set_as_current=False)
    monkeypatch.setattr(sys.modules[__name__], "nowhere", nowhere, raising=False)
    settings.AGENCY = {"CELERY_APP": f"{__name__}.nowhere"}
    answer = client.get("/health/ready")
    assert (answer.status_code, answer.json()["broker"]) == (200, "away")


@pytest.mark.django_db
def test_not_ready_while_a_migration_is_missing(client):
    MigrationRecorder(connection).migration_qs.filter(app="agency").order_by("-id").first().delete()
    answer = client.get("/health/ready")
    assert answer.status_code == 503
    assert "migrate" in answer.json()["reason"]


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/health/live", "/health/ready"])
def test_health_is_only_read(client, path):
    assert client.post(path).status_code == 405

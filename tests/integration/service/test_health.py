"""The health checks: alive without the database, ready only with all of its tables."""

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from agency.config import health


@pytest.fixture(autouse=True)
def forgetful():
    """The process remembers that all is migrated; here it must look."""
    health._migrated.clear()
    yield
    health._migrated.clear()


def test_alive_asks_nothing_of_the_database(client):
    answer = client.get("/health/live")
    assert (answer.status_code, answer.json()) == (200, {"status": "live"})
    assert "no-store" in answer["Cache-Control"]


@pytest.mark.django_db
def test_ready_when_the_database_has_every_table(client):
    answer = client.get("/health/ready")
    assert (answer.status_code, answer.json()) == (200, {"status": "ready"})


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

"""The session runs on the database it was asked for, set as durability needs it."""

import os

import pytest
from django.db import connection

VENDORS = {"sqlite": "sqlite", "postgres": "postgresql"}


@pytest.mark.django_db
def test_the_session_uses_the_chosen_database() -> None:
    assert connection.vendor == VENDORS[os.environ["AGENCY_TEST_DB"]]


@pytest.mark.sqlite_only
@pytest.mark.django_db
@pytest.mark.parametrize(("pragma", "value"), [("journal_mode", "wal"), ("synchronous", 2)])
def test_sqlite_is_a_file_that_survives_a_power_cut(pragma: str, value: object) -> None:
    with connection.cursor() as cursor:
        assert cursor.execute(f"PRAGMA {pragma}").fetchone() == (value,)


@pytest.mark.postgres_only
@pytest.mark.django_db
def test_postgresql_is_one_that_we_support() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        assert int(cursor.fetchone()[0]) >= 150000

"""The session runs on the database it was asked for, set as durability needs it."""

import os

import psycopg
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


@pytest.mark.postgres_only
def test_a_process_of_its_own_gets_an_empty_database(database_url: str) -> None:
    with psycopg.connect(database_url) as session:
        assert session.execute("SELECT to_regclass('agency_execution')").fetchone() == (None,)


@pytest.mark.sqlite_only
def test_a_process_of_its_own_gets_a_file(database_url: str) -> None:
    assert database_url.startswith("sqlite:////")

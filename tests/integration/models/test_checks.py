"""What PostgreSQL reads for each row that is written: CHECKs that are short, and still say all they said."""

import importlib

import pytest
from django.apps import apps
from django.db import connection

from agency.models import Event, Execution, Message, Step

SHORT = 1_000
"""Characters of a stored expression: a call, or a comparison."""
migration = importlib.import_module("agency.migrations.0006_checks_by_function")

pytestmark = [pytest.mark.django_db, pytest.mark.postgres_only]


def checks(what: str) -> dict[str, str]:
    tables = [model._meta.db_table for model in (Execution, Event, Step, Message)]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT conname, {what} FROM pg_constraint "
            "WHERE contype = 'c' AND conrelid::regclass::text = ANY (%s)",
            [tables],
        )
        return dict(cursor.fetchall())


def test_no_check_of_a_table_that_each_step_writes_is_long_to_read() -> None:
    long = {name: size for name, size in checks("length(conbin::text)").items() if size > SHORT}
    assert not long, "a migration that adds a long check makes it a call, as 0006 does"


def test_written_out_again_and_made_calls_again_the_checks_are_the_same() -> None:
    as_calls = checks("pg_get_constraintdef(oid)")
    with connection.schema_editor() as editor:
        migration.write_out(apps, editor)
        assert set(checks("oid")) == set(as_calls)
        assert not [said for said in checks("pg_get_constraintdef(oid)").values() if "_holds(" in said]
        migration.call(apps, editor)
    assert checks("pg_get_constraintdef(oid)") == as_calls


def test_each_function_says_what_the_model_says() -> None:
    names = [f"agency_{model.lower()}_{name}" for model, names in migration.LONG.items() for name in names]

    def bodies() -> dict[str, str]:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT proname, prosrc FROM pg_proc WHERE proname = ANY (%s)",
                [[f"{name}_holds" for name in names]],
            )
            return dict(cursor.fetchall())

    migrated = bodies()
    with connection.schema_editor() as editor:
        migration.write_out(apps, editor)
        migration.call(apps, editor)
    assert len(migrated) == len(names)
    assert bodies() == migrated

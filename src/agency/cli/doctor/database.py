"""The database: what it is, whether its options are in force, its migrations and its clock."""

import os
from collections.abc import Iterator
from typing import Any

from agency.cli.doctor.finding import Finding, fine, wrong
from agency.cli.project import READY_PROJECT
from agency.runtime import database_options as options

OLDEST_POSTGRESQL = 15
SKEW = 2.0


def examine() -> Iterator[Finding]:
    """Findings about the database that holds the executions; one alone if it cannot be reached."""
    from django.db import Error, connections

    from agency.execution.claims import database

    connection = connections[database()]
    try:
        yield _options(connection)
        yield _migrations(connection)
        yield _clock()
    except Error as error:
        reason = str(error).strip().splitlines()[0]
        place = connection.settings_dict["NAME"]
        yield wrong("Database", f"{place}: {reason}", "Start the server, or correct AGENCY_DATABASE_URL.")
    finally:
        connection.close()


def _options(connection: Any) -> Finding:
    if connection.vendor == "sqlite":
        return _sqlite(connection)
    if connection.vendor == "postgresql":
        return _postgresql(connection)
    return wrong("Database", connection.vendor, "Use SQLite or PostgreSQL.")


def _sqlite(connection: Any) -> Finding:
    said, bad = options.sqlite(connection)
    if bad:
        return wrong("Database", f"SQLite, {said}; not as it must be: {', '.join(bad)}", options.FIX_SQLITE)
    return fine("Database", f"SQLite {options.ask(connection, 'SELECT sqlite_version()')}, {said}")


def _postgresql(connection: Any) -> Finding:
    version = options.ask(connection, "SHOW server_version")
    safe = {name: options.ask(connection, f"SHOW {name}") for name in ("fsync", "synchronous_commit")}
    said = f"PostgreSQL {version}, " + ", ".join(f"{name} {value}" for name, value in safe.items())
    if int(version.split(".")[0]) < OLDEST_POSTGRESQL:
        return wrong("Database", said, "Use PostgreSQL 15 or newer.")
    if off := [name for name, value in safe.items() if value == "off"]:
        return wrong("Database", said, f"Turn {' and '.join(off)} on: a crash may lose what was promised.")
    if off := options.unlimited(connection):
        return wrong("Database", f"{said}; without {', '.join(off)}", options.FIX_POSTGRESQL)
    return fine("Database", said)


def _migrations(connection: Any) -> Finding:
    from django.db.migrations.executor import MigrationExecutor

    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if not missing:
        return fine("Migrations", "all applied")
    if os.environ.get("DJANGO_SETTINGS_MODULE") == READY_PROJECT:
        return fine("Migrations", f"{len(missing)} to apply, which the next command does")
    return wrong("Migrations", f"{len(missing)} are missing", "Run `python manage.py migrate`.")


def _clock() -> Finding:
    """Due times come from the database's clock; people read this machine's."""
    from datetime import UTC, datetime

    from agency.models.clock import database_now

    off = abs((database_now() - datetime.now(UTC)).total_seconds())
    if off > SKEW:
        fix = "Synchronise the clocks of this machine and of the database server (NTP)."
        return wrong("Clock", f"the database's clock and this machine's differ by {off:.1f} s", fix)
    return fine("Clock", f"database and machine agree within {max(off, 0.1):.1f} s")

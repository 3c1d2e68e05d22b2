"""A running service for the tests that need one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import servers
from tests.e2e.service import Service, running


@pytest.fixture
def place() -> Iterator[Path]:
    """A home in a directory that the test can also use for other files."""
    with servers.directory("agency-up-") as directory:
        yield directory / "home"


@pytest.fixture(scope="module")
def shared() -> Iterator[Service]:
    """One service on SQLite for all tests that leave it running."""
    with servers.directory("agency-up-") as directory:
        yield from running(directory / "home")


@pytest.fixture
def service(place: Path, database_url: str) -> Iterator[Service]:
    """A service of the test's own, on the session's kind of database."""
    yield from running(place, AGENCY_DATABASE_URL=database_url)

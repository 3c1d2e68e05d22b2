"""The fault tests: the same executions as the runtime's tests, in processes that die."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from agency.execution.invariants import violations
from agency.runtime import conf
from tests.faults import proxy as proxies
from tests.faults.processes import Processes
from tests.faults.proxy import Proxy
from tests.integration.runtime.conftest import bill, clerk, known_definitions, submit

__all__ = ["bill", "clerk", "known_definitions", "submit"]


@pytest.fixture(autouse=True)
def the_rows_agree(request: pytest.FixtureRequest) -> Iterator[None]:
    """After every test that wrote rows: what it left breaks no invariant."""
    if request.node.get_closest_marker("django_db") is None:
        yield
        return
    request.getfixturevalue("transactional_db")
    yield
    assert [str(broken) for broken in violations(conf.current().CLAIM_CAP)] == []


@pytest.fixture
def processes(transactional_db: None, bill: Any, tmp_path: Path) -> Iterator[Callable[..., Processes]]:
    """`processes(broker=None, **settings)`: what starts processes on the test's own database."""
    made: list[Processes] = []

    def create(broker: str | None = None, **settings: Any) -> Processes:
        made.append(Processes(tmp_path, str(connection.settings_dict["NAME"]), broker, **settings))
        return made[-1]

    yield create
    for one in made:
        one.stop()


@pytest.fixture
def proxy(transactional_db: None) -> Iterator[Proxy]:
    """This process's connection to PostgreSQL goes through it."""
    direct = connection.settings_dict["HOST"]
    with proxies.before(direct) as made:
        connection.close()
        connection.settings_dict["HOST"] = made.host
        yield made
        made.spare()
        connection.close()
        connection.settings_dict["HOST"] = direct

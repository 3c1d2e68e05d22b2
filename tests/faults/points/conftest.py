"""Processes that die at a named point, for the tests of this directory."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from tests.faults.points.mortals import Mortals
from tests.faults.processes import Processes


@pytest.fixture(scope="module")
def mortals(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mortals]:
    home: Path = tmp_path_factory.mktemp("mortals")
    processes = Processes(home, str(connection.settings_dict["NAME"]))
    yield Mortals(processes)
    processes.stop()

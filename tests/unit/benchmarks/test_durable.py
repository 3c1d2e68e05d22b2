"""The subjects of the durable benchmark do what they say, and a round of it gives all figures."""

import sys
from pathlib import Path

import pytest

from benchmarks.durable.journal import SUBJECTS, journal_rows
from benchmarks.rounds import Worker

FIGURES = {"step", "first", "last", "cpu", "stored"}


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_subject_stores_what_its_steps_leave(name: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/database.sqlite3"
    with Worker(name, Path(sys.executable), "benchmarks.durable.worker", url) as worker:
        assert worker.hello() is not None, worker.fault()
        measured = worker.ask({"count": 20})
    assert measured is not None
    assert set(measured) == FIGURES
    assert measured["step"] > 0
    # Two texts of a kilobyte a step.
    assert 2_000 < measured["stored"] < 12_000


@pytest.mark.slow
def test_a_round_gives_every_row_on_both_databases(tmp_path: Path) -> None:
    rows = {row.name: row for row in journal_rows(tmp_path, 1, [10, 20], ["none"])}
    for database in ("PostgreSQL", "SQLite"):
        step = rows[f"a journaled step of 20 on {database}, two commits"]
        assert (step.unit, step.peers) == ("ms", {})
        assert step.floor is not None
        assert rows[f"bytes stored a step on {database}, 20 steps to 10"].ok

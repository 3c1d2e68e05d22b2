"""The page of faults numbers each once and names tests that exist."""

import functools
import re
from importlib import import_module

from tests.docs.named import ROOT, not_there
from tests.faults.points.points import ELSEWHERE, RUNNING

PAGE = ROOT / "docs" / "faults.md"
LINES = PAGE.read_text(encoding="utf-8").splitlines()
ROWS = [line.split("|")[1:-1] for line in LINES if re.match(r"\| \d", line)]


def test_every_number_is_there_once_and_in_order() -> None:
    assert [int(row[0]) for row in ROWS] == list(range(1, 79))


def test_every_test_that_is_named_exists() -> None:
    wrong = [(number.strip(), entry) for number, _, _, shown in ROWS for entry in not_there(shown)]
    assert wrong == []


def test_every_fail_point_wraps_something_that_is_there() -> None:
    """Here, where it costs nothing: a name that moved is found without starting any process."""
    points = {**RUNNING, **ELSEWHERE}
    for name, point in points.items():
        module, _, path = point.seam.partition(":")
        found = functools.reduce(
            lambda holder, one: getattr(holder, one, None), path.split("."), import_module(module)
        )
        assert callable(found), name

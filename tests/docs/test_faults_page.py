"""The page of faults numbers each once and names tests that exist."""

import ast
import functools
import re
from functools import cache
from importlib import import_module
from pathlib import Path

from tests.faults.points.points import ELSEWHERE, RUNNING

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "faults.md"
LINES = PAGE.read_text(encoding="utf-8").splitlines()
ROWS = [line.split("|")[1:-1] for line in LINES if re.match(r"\| \d", line)]


@cache
def functions_of(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_number_is_there_once_and_in_order() -> None:
    assert [int(row[0]) for row in ROWS] == list(range(1, 79))


def test_every_test_that_is_named_exists() -> None:
    wrong: list[str] = []
    for number, _, _, shown in ROWS:
        for entry in (part.strip() for part in shown.split("<br>")):
            path, _, name = entry.strip("`").partition("::")
            if not ((ROOT / path).is_file() and name in functions_of(path)):
                wrong.append(f"{number.strip()}: {entry}")
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

"""Finds the tests that a page names as `path::function`, so that no page promises one that is gone."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@cache
def functions_of(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def not_there(shown: str) -> list[str]:
    """Those of the named tests that do not exist, of a table's cell with one a line."""
    named = [entry.strip().strip("`") for entry in shown.split("<br>")]
    return [entry for entry in named if not _is_there(*entry.partition("::")[::2])]


def _is_there(path: str, name: str) -> bool:
    return (ROOT / path).is_file() and name in functions_of(path)

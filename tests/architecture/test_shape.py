"""What every module of the package owes its reader."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "agency"
MODULES = [
    path
    for path in sorted(PACKAGE.rglob("*.py"))
    if "migrations" not in path.parts and path.read_text(encoding="utf-8").strip()
]
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}


def name(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def test_every_module_opens_by_saying_what_it_answers_for() -> None:
    silent = [path for path in MODULES if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]
    assert [name(path) for path in silent] == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [name(path) for path in MODULES if path.stem in VAGUE] == []


def test_half_of_the_modules_have_at_most_ninety_lines() -> None:
    lengths = sorted(len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES)
    assert lengths[len(lengths) // 2] <= 90


def test_agency_itself_exports_nothing() -> None:
    assert (PACKAGE / "__init__.py").read_text(encoding="utf-8").strip() == ""

"""What the README shows is what happens."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
PYTHON = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
UUID = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
SECONDS = re.compile(r"\d+\.\d+ s\b")
BLOCKS = [
    pytest.param(found[1], id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, found in enumerate(PYTHON.finditer(page.read_text(encoding="utf-8")), start=1)
]


def block(marker: str) -> str:
    """The fenced block after `<!-- marker -->`."""
    text = README.read_text(encoding="utf-8")
    found = re.search(rf"<!-- {re.escape(marker)} -->\s*```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert found, f"README.md has no block marked {marker!r}"
    return found[1]


def without_chance(text: str) -> str:
    return SECONDS.sub("0.00 s", UUID.sub("a-uuid", text)).strip()


def test_the_example_runs_and_prints_what_the_readme_says(tmp_path: Path) -> None:
    example = tmp_path / "example.py"
    example.write_text(block("example: readme"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, example],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert without_chance(done.stdout) == without_chance(block("output: readme"))


@pytest.mark.parametrize(
    ("given", "apps"),
    [
        ({}, f"records,missions.filing {ROOT / 'examples'}"),
        ({"AGENCY_APPS": "mine", "AGENCY_APPS_DIR": "/else"}, "mine /else"),
    ],
    ids=["none named", "others named"],
)
def test_make_up_serves_the_examples_unless_other_apps_are_named(
    tmp_path: Path, given: dict[str, str], apps: str
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    (tmp_path / ".ready-demo").touch()
    agency = tmp_path / "bin" / "agency"
    agency.write_text('#!/bin/sh\necho "$1: $AGENCY_APPS $AGENCY_APPS_DIR"\n', encoding="utf-8")
    agency.chmod(0o755)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("AGENCY_APPS")}
    done = subprocess.run(
        ["make", "--silent", "up", f"VENV={tmp_path}"],
        cwd=ROOT,
        env={**environ, **given},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.stdout.strip() == f"up: {apps}", done.stderr


@pytest.mark.parametrize("source", BLOCKS)
def test_python_shown_in_the_documentation_parses(source: str) -> None:
    assert ast.parse(source).body

"""The page about missions is one session too: every block runs, and prints what the page says.

What it promises is shown by tests that exist.
"""

import contextlib
import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agency.agent import BaseAgent
from agency.execution import registry
from agency.mission.completion import BaseCompletionCheck
from agency.mission.completion import registry as checks
from agency.mission.watches import BaseWatch
from agency.mission.watches import registry as watches
from tests.docs.named import ROOT, not_there
from tests.docs.test_agent_page import BLOCK

PAGE = ROOT / "docs" / "missions.md"


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    with registry.isolated(), checks.isolated(), watches.isolated():
        yield


def _declare(session: dict[str, Any], known: set[str]) -> None:
    """What an app's modules would declare."""
    kinds = ((BaseAgent, registry), (BaseCompletionCheck, checks), (BaseWatch, watches))
    for name in session.keys() - known:
        found = session[name]
        for parent, where in kinds:
            if isinstance(found, type) and issubclass(found, parent) and found is not parent:
                where.register(found)


@pytest.mark.django_db
def test_every_example_runs_in_order_and_prints_what_the_page_says(
    scripted_llm: Callable[..., Any], agency_agent: Callable[..., Any]
) -> None:
    text = PAGE.read_text(encoding="utf-8")
    session: dict[str, Any] = {
        "__name__": "page",
        "scripted_llm": scripted_llm,
        "agency_agent": agency_agent,
    }
    ran = 0
    for found in BLOCK.finditer(text):
        line, known = text[: found.start()].count("\n") + 1, set(session)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + found["code"], str(PAGE), "exec"), session)
        _declare(session, known)
        assert printed.getvalue() == (found["output"] or ""), f"the example at line {line}"
        ran += 1
    assert ran == text.count("```python")


def test_every_promise_names_tests_that_exist() -> None:
    _, promises = PAGE.read_text(encoding="utf-8").split("## What is promised, and what shows it")
    rows = [line.split("|")[1:-1] for line in promises.splitlines() if "::" in line]
    assert len(rows) > 80
    assert [(what.strip(), entry) for what, shown in rows for entry in not_there(shown)] == []

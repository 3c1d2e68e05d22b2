"""Executions of the fault tests' definition, and the bill of what they cost."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agency.execution import registry, service
from agency.models import ConfiguredAgent, Execution
from tests.faults.app.agents import BILL, Clerk
from tests.faults.app.executions import Errand

Submit = Callable[..., Execution]


@pytest.fixture(autouse=True)
def known_definitions() -> Iterator[None]:
    with registry.isolated(empty=True):
        registry.register(Clerk, Errand)
        yield


@pytest.fixture
def bill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Counter[str]]:
    """What the model and the tools were asked so far, each with how often."""
    path = tmp_path / "bill"
    path.touch()
    monkeypatch.setenv(BILL, str(path))
    return lambda: Counter(path.read_text().splitlines())


@pytest.fixture
def clerk(agency_agent: Callable[..., ConfiguredAgent]) -> ConfiguredAgent:
    return agency_agent("fault-clerk")


@pytest.fixture
def submit(agency_agent: Callable[..., ConfiguredAgent], bill: Any) -> Submit:
    """`submit(task, word="done")`: an execution of a new agent, due now."""

    def create(task: str = '{"a": "done"}', word: str = "done") -> Execution:
        agent = agency_agent("fault-clerk")
        return service.submit("fault-errand", agent, {"task": task, "word": word}).execution

    return create

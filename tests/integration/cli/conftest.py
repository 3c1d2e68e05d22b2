"""What the command line's tests share: a way to call it as the shell does, and an agent to look at."""

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agency.cli.main import main
from agency.cli.project import local_user
from agency.models import ConfiguredAgent, Execution
from tests.integration.rows import execution_row


@dataclass
class Called:
    """What a command gave back."""

    code: int
    out: str
    err: str


@pytest.fixture
def agency(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., Called]:
    """Calls `agency ARGS` in a home of its own, with `stdin`."""
    monkeypatch.setenv("AGENCY_HOME", str(tmp_path / "home"))

    def call(*args: str, stdin: str = "") -> Called:
        monkeypatch.setattr(sys, "argv", ["agency", *args])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return Called(ended.value.code or 0, said.out, said.err)

    return call


@pytest.fixture
def execution(db: None) -> Callable[..., Execution]:
    """A factory of executions of the local user, as a row in the wanted state."""
    agent = ConfiguredAgent.objects.create(owner=local_user(), name="Clerk", agent_key="clerk")

    def make(**columns: Any) -> Execution:
        return execution_row(agent, **columns)

    return make

"""The commands for missions that the README shows do what it says, in its order."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agency.models import Execution
from agency.runtime.wiring import use_client
from agency.testing import run_until_parked
from tests.integration.mission.scripted import Model, decision, go_on

README = Path(__file__).parents[3] / "README.md"


def commands() -> list[list[str]]:
    text = README.read_text(encoding="utf-8")
    found = re.search(r"<!-- commands: missions -->\n```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert found
    lines = found[1].replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines]


@pytest.mark.django_db
def test_the_commands_of_the_readme_lead_a_mission_from_its_creation_to_its_end(
    agency: Callable[..., Any],
) -> None:
    model = Model()
    model.answers = [f"Shelf {n} is counted." for n in range(1, 5)]
    model.decisions = [
        decision("wait", wait={"signal": "delivery", "what_for": "the delivery"}),
        decision("wait", wait={"seconds": 3600}),
        go_on("Count shelf 4."),
        decision("complete", evidence="Shelf 4 is counted."),
    ]
    reached: list[tuple[str, int]] = []
    with use_client(model):
        for arguments in commands():
            execution = Execution.objects.first()
            called = agency(*(str(execution.pk) if one == "ID" and execution else one for one in arguments))
            assert called.code == 0, (arguments, called.err)
            if execution := Execution.objects.first():
                row = run_until_parked(execution)
                reached.append((row.loop_status, row.iteration))
    assert list(dict.fromkeys(reached)) == [
        *(("waiting", 1), ("waiting", 2), ("limit_reached", 3), ("completed", 4))
    ]
    assert execution is not None and execution.mission is not None
    assert execution.mission.schedules.get().time_zone == "Europe/Berlin"

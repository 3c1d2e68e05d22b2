"""What a worker's log says of a mission's run."""

import logging

import pytest

from agency.models import ConfiguredAgent
from agency.testing import run_until_parked
from tests.integration.mission.scripted import Model, mission
from tests.integration.mission.waits import is_due, run_once, waiting_for

pytestmark = pytest.mark.django_db


def test_a_mission_has_iterations_and_no_attempts(
    agent: ConfiguredAgent, model: Model, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "agency.runtime")
    model.answers = ["Sorted."]
    run_until_parked(mission(agent).dispatch())
    assert "iteration 1 begins" in caplog.text
    assert "attempt" not in caplog.text


@pytest.mark.usefixtures("bell")
def test_a_look_whether_a_wait_is_over_begins_none(
    agent: ConfiguredAgent, model: Model, caplog: pytest.LogCaptureFixture
):
    execution = waiting_for(agent, model, {"signal": "stock"})
    is_due(execution)
    caplog.set_level(logging.INFO, "agency.runtime")
    run_once(execution)
    assert "looks whether its wait is over" in caplog.text
    assert "begins" not in caplog.text

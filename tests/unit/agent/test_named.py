"""Models addressed by name."""

import pytest

from agency.agent import Agent
from agency.errors import ConfigurationError


def test_a_model_is_found_by_its_name() -> None:
    agent = Agent("clerk", "scripted:tests.unit.agent.doubles:greeter")
    assert agent.run("hi").output == "hello"
    assert agent.run("hi again").output == "hello"


def test_a_named_model_is_looked_up_with_the_first_request_and_not_before() -> None:
    agent = Agent("clerk", "nowhere:model")
    assert agent.model_name == "nowhere:model"
    with pytest.raises(ConfigurationError, match="'nowhere:model' is not a model"):
        agent.run("hi")

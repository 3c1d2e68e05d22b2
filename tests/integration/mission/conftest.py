"""A clerk, and the model that it and its supervisor ask."""

from collections.abc import Callable, Iterator

import pytest

from agency.mission.watches import registry
from agency.models import ConfiguredAgent
from agency.runtime.wiring import use_client
from tests.integration.mission.scripted import Model
from tests.integration.mission.waits import Bell


@pytest.fixture
def model() -> Iterator[Model]:
    made = Model()
    with use_client(made):
        yield made


@pytest.fixture
def agent(agency_agent: Callable[..., ConfiguredAgent]) -> ConfiguredAgent:
    return agency_agent("clerk")


@pytest.fixture
def bell() -> Iterator[None]:
    """The watch of `waits`, with nothing to say yet."""
    Bell.says, Bell.saw = [], []
    with registry.isolated():
        registry.register(Bell)
        yield

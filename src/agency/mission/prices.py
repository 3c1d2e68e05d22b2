"""Finds the models that a budget in money could never be reached with, since nobody knows what they cost."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.conf import settings

from agency.agent.agent import Agent
from agency.agent.agent_tool import AgentTool
from agency.agent.providers.choice import choose_model
from agency.agent.providers.prices import is_price_known
from agency.execution import registry
from agency.mission.fields import Fault
from agency.models import ConfiguredAgent


def model_of(agent: ConfiguredAgent) -> str:
    """The model that the agent asks; empty for the one that the environment chooses."""
    return agent.model or registry.get_agent_class(agent.agent_key).DEFAULT_MODEL or ""


def price_faults(
    agent: ConfiguredAgent, supervisor: str | None, limits: Mapping[str, Any]
) -> Iterator[Fault]:
    """What is wrong with `limits["cost"]`, if there is one. `supervisor` is `None` where there is none."""
    if "cost" not in limits:
        return
    own = model_of(agent)
    unknown = unpriced(name or choose_model().name for name in (own, supervisor or own))
    if unknown:
        yield (
            "limits.cost",
            f"would never be reached, since the price of {' and '.join(unknown)} is not known; "
            "cap limits.tokens instead, or choose a model that has a price",
        )


def unpriced(names: Iterable[str]) -> list[str]:
    """Those of the models whose price is not known.

    A project's own clients (`LLM_CLIENT_FACTORY`) say what they cost, and are believed.
    """
    if getattr(settings, "AGENCY", {}).get("LLM_CLIENT_FACTORY"):
        return []
    return sorted({name for name in names if not is_price_known(name)})


def asked_by(agent: Agent) -> Iterator[str]:
    """The models that an agent's run asks: its own, and those of the agents among its tools."""
    if agent.model_name:
        yield agent.model_name
    for tool in agent.tools:
        if isinstance(tool, AgentTool):
            yield from asked_by(tool.agent)

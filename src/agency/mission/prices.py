"""Refuses a budget in money that could never be reached, since nobody knows what the models cost."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings

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
    """What is wrong with `limits["cost"]`, if there is one. `supervisor` is `None` where there is none.

    A project's own clients (`LLM_CLIENT_FACTORY`) say what they cost, and are believed.
    """
    if "cost" not in limits or getattr(settings, "AGENCY", {}).get("LLM_CLIENT_FACTORY"):
        return
    own = model_of(agent)
    names = {name or choose_model().name for name in (own, supervisor or own)}
    unknown = sorted(name for name in names if not is_price_known(name))
    if unknown:
        yield (
            "limits.cost",
            f"would never be reached, since the price of {' and '.join(unknown)} is not known; "
            "cap limits.tokens instead, or choose a model that has a price",
        )

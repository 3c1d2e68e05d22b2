"""What an execution keeps of its agent and definition as they were when it was ordered."""

import hashlib
from typing import Any

from agency.agent.providers.choice import provider_of
from agency.agent.text import canonical
from agency.execution import registry
from agency.execution.definition import BaseAgenticExecutionDefinition
from agency.models import ConfiguredAgent

VERSION = 1
_AGENT = (
    "agent_key",
    "name",
    "model",
    "prompt_variables",
    "prompt_override",
    "tool_settings",
    "limits",
)


def snapshot(
    definition: type[BaseAgenticExecutionDefinition], agent: ConfiguredAgent
) -> tuple[dict[str, Any], str]:
    """The configuration and its SHA-256: editing the agent changes later orders only."""
    return of_order(
        agent,
        definition={
            "execution_key": definition.EXECUTION_KEY,
            "name": definition.NAME,
            "max_retries": definition.MAX_RETRIES,
        },
    )


def of_order(agent: ConfiguredAgent, **order: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The configuration with what is kept of the `definition` or `mission`, and its SHA-256."""
    config = {"version": VERSION, "agent": {name: getattr(agent, name) for name in _AGENT}, **order}
    return config, digest(config)


def provider(agent: ConfiguredAgent) -> str:
    """Who will be asked for the agent's model: part of the lane in which its executions wait."""
    return provider_of(agent.model or registry.get_agent_class(agent.agent_key).DEFAULT_MODEL or "")[:100]


def digest(value: Any) -> str:
    """SHA-256 of a JSON value, the same whatever the order of its keys."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()

"""Configured agents: creating and removing one, and finding the one to use for an agent class."""

from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction

from agency.errors import InvalidInput
from agency.execution import registry
from agency.execution.settings import check_settings
from agency.models import ConfiguredAgent


def create_agent(owner: Any, *, name: str, agent_key: str, **settings: Any) -> ConfiguredAgent:
    """A new agent of a registered class; raises `InvalidInput` naming the field that does not fit."""
    known = registered_keys()
    if agent_key not in known:
        message = f"no agent class is registered as {agent_key!r}; known: {', '.join(known) or 'none'}"
        raise InvalidInput(f"agent_key: {message}", [{"path": "agent_key", "message": message}])
    check_agent_settings(agent_key, settings)
    try:
        with transaction.atomic():
            return ConfiguredAgent.objects.create(owner=owner, name=name, agent_key=agent_key, **settings)
    except IntegrityError:
        if not ConfiguredAgent.objects.filter(owner=owner, name=name).exists():
            raise
    message = f"you already have an agent named {name!r}"
    raise InvalidInput(f"name: {message}", [{"path": "name", "message": message}])


def agent_for(owner: Any, agent_key: str) -> ConfiguredAgent:
    """The owner's first agent of this class, created with the class's name if there is none yet."""
    found = (
        ConfiguredAgent.objects.filter(owner=owner, agent_key=agent_key).order_by("created_at", "id").first()
    )
    return found or create_agent(owner, name=_free_name(owner, agent_key), agent_key=agent_key)


def remove_agent(agent: ConfiguredAgent) -> str | None:
    """Delete an agent that nothing uses; else say in a sentence what does, and delete nothing."""
    used = [_counted(agent.missions, "mission"), _counted(agent.executions, "execution")]
    used += [] if any(used) else [_counted(agent.threads, "thread")]
    if any(used):
        by = " and ".join(filter(None, used))
        return f"The agent {agent.name!r} is used by {by}, which would be lost without it."
    agent.delete()
    return None


def _counted(rows: Any, noun: str) -> str:
    found: int = rows.count()
    return f"{found:,} {noun}{'' if found == 1 else 's'}" if found else ""


def check_agent_settings(agent_key: str, given: Mapping[str, Any]) -> None:
    """Refuse settings of an agent's row that its class or its definitions cannot use, naming each."""
    cls = registry.get_agent_class(agent_key)
    tools = [*cls.TOOLS]
    for definition in registry.definitions_for(agent_key):
        tools += definition.TOOLS or ()
    names = ("prompt_variables", "limits", "tool_settings")
    check_settings(cls, tools, **{name: given[name] for name in names if name in given})


def registered_keys() -> list[str]:
    """The keys of all registered agent classes, sorted."""
    return sorted(registry.agent_classes())


def _free_name(owner: Any, agent_key: str) -> str:
    name = registry.get_agent_class(agent_key).NAME or agent_key
    taken = ConfiguredAgent.objects.filter(owner=owner, name=name).exists()
    return f"{name} ({agent_key})" if taken else name

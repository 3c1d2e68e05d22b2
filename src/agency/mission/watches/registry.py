"""The watches that the project has, by name."""

from agency.mission.registry import Registry
from agency.mission.watches.declared import BaseWatch, watch_faults

_registry = Registry(BaseWatch, watch_faults, "watch")
get_watch = _registry.get
names = _registry.names
problems = _registry.problems
autodiscover = _registry.autodiscover
register = _registry.register
isolated = _registry.isolated


def described() -> str:
    """The watches as a supervisor is told of them, one a line; empty if there are none."""
    return "\n".join(f"- {name}: {get_watch(name).DESCRIPTION.strip()}" for name in names())

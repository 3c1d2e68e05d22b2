"""The completion checks that the project has, by name."""

from agency.mission.completion.declared import BaseCompletionCheck, check_faults
from agency.mission.registry import Registry

_registry = Registry(BaseCompletionCheck, check_faults, "completion check")
get_check = _registry.get
names = _registry.names
problems = _registry.problems
autodiscover = _registry.autodiscover
register = _registry.register
isolated = _registry.isolated


def described() -> dict[str, str]:
    """What each check is for, by name."""
    return {name: get_check(name).DESCRIPTION.strip() for name in names()}

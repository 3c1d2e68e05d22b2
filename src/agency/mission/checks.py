"""Django system checks: every faulty watch, completion check and `missions` module, with file and fix."""

from typing import Any

from django.core import checks

from agency.execution.checks import as_message
from agency.mission.completion import registry as completion
from agency.mission.watches import registry as watches


def register_checks() -> None:
    checks.register(check_declarations, "agency")


def check_declarations(app_configs: Any = None, **kwargs: Any) -> list[checks.CheckMessage]:
    """What the registries found wrong. An error does not keep the sound classes from working."""
    found = dict.fromkeys([*watches.problems(), *completion.problems()])  # a module is searched for both
    return [as_message(problem) for problem in found]

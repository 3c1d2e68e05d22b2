"""Django system checks: every faulty watch and `missions` module, named with its file and the fix."""

from typing import Any

from django.core import checks

from agency.execution.checks import as_message
from agency.mission.watches import registry


def register_checks() -> None:
    checks.register(check_watches, "agency")


def check_watches(app_configs: Any = None, **kwargs: Any) -> list[checks.CheckMessage]:
    """What the registry found wrong. An error does not keep the sound watches from working."""
    return [as_message(problem) for problem in registry.problems()]

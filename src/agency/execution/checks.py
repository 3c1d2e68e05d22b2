"""Django system checks: every faulty agent class, definition and module, named with its file and the fix."""

from typing import Any

from django.core import checks

from agency.execution import registry


def register_checks() -> None:
    checks.register(check_declarations, "agency")


def check_declarations(app_configs: Any = None, **kwargs: Any) -> list[checks.CheckMessage]:
    """What the registry found wrong. An error does not keep the sound classes from running."""
    return [as_message(problem) for problem in registry.problems()]


def as_message(problem: registry.Problem) -> checks.CheckMessage:
    kind = checks.Warning if problem.is_warning else checks.Error
    return kind(problem.message, hint=problem.hint, obj=problem.obj, id=problem.id)

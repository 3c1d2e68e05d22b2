"""Makes the checks of a claimed completion, one after the other; the first that does not pass decides."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from agency.agent.text import cut
from agency.mission.completion import registry
from agency.mission.completion.declared import BaseCompletionCheck, ClaimedCompletion
from agency.mission.loop import TEXT_LIMIT
from agency.mission.watches.limited import within
from agency.redaction import safe_logger

log = safe_logger("agency.mission")


@dataclass(frozen=True, slots=True)
class Verified:
    """`failed` is the name of the check that did not pass, with what it asks for; `None` if all have."""

    passed: list[str]
    failed: str | None = None
    missing: str = ""


def verify(names: Sequence[str], claimed: ClaimedCompletion, cancelled: Callable[[], bool]) -> Verified:
    """The outcome of all checks. `NotDeployed` names one that this code does not have."""
    checks = [registry.get_check(name) for name in names]
    passed: list[str] = []
    for check in checks:
        missing = _missing(check, claimed, cancelled)
        if missing is not None:
            return Verified(passed, check.NAME, cut(missing, TEXT_LIMIT))
        passed.append(check.NAME)
    return Verified(passed)


def _missing(
    check: type[BaseCompletionCheck], claimed: ClaimedCompletion, cancelled: Callable[[], bool]
) -> str | None:
    try:
        said = cast(
            "Any",
            within(f"check-{claimed.execution_id}", lambda: check().check(claimed), check.SECONDS, cancelled),
        )
        if said is not None and not isinstance(said, str):
            raise TypeError(f"check() gave {type(said).__name__}; return None or a text")
    except Exception as exc:  # a project's code: whatever it raises, the completion is not verified
        log.warning("execution %s: the check %s failed: %r", claimed.execution_id, check.NAME, exc)
        return (
            f"The completion check {check.NAME!r} could not be made ({type(exc).__name__}). "
            f"It checks: {check.DESCRIPTION.strip()} Make sure of that, and say what shows it."
        )
    if said is None:
        return None
    return said.strip() or f"The completion check {check.NAME!r} has not passed: {check.DESCRIPTION.strip()}"

"""Why an execution failed, in words that a program can compare, and what `run()` hands back."""

from dataclasses import dataclass, field
from typing import Any


class ExecutionFailureCode:
    """The codes that agency gives. Plain strings, so that a definition can subclass and add its own.

    Point the definition's `FAILURE_CODES` at the subclass; the definitions endpoint lists its codes.
    """

    RUNTIME_ERROR = "runtime_error"
    MAX_RETRIES_EXCEEDED = "max_retries_exceeded"
    VALIDATION_FAILED = "validation_failed"
    UNKNOWN = "unknown"
    LIMIT_REACHED = "limit_reached"
    BUDGET_EXCEEDED = "budget_exceeded"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    CRASH_LOOP = "crash_loop"
    REQUEST_EXPIRED = "request_expired"
    NO_PROGRESS = "no_progress"
    SUPERVISOR_INVALID = "supervisor_invalid"
    CONTEXT_OVERFLOW = "context_overflow"
    MODEL_REFUSED = "model_refused"
    MISSION_FAILED = "mission_failed"


def failure_codes(codes: type[ExecutionFailureCode]) -> list[str]:
    """Every code of the class, agency's first, then those that subclasses add, in the order written."""
    found: dict[str, None] = {}
    for cls in reversed(codes.__mro__):
        for name in vars(cls):
            if name.isupper() and not name.startswith("_"):
                found[getattr(codes, name)] = None
    return list(found)


@dataclass
class ExecutionResult:
    """What became of an execution; an outcome, never an exception.

    `output` is a JSON object. `failure_code` and `failure_summary` (for people) say why it failed; a
    failure without a code is stored as `unknown`.
    """

    success: bool
    output: dict[str, Any] = field(default_factory=dict[str, Any])
    failure_code: str | None = None
    failure_summary: str | None = None

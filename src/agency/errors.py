"""The error tree. Expected outcomes are values; these say that a promise was broken or a run must stop.

`RunSignal` and its children are `BaseException`s so that user code that catches `Exception`
cannot swallow them.
"""

from collections.abc import Sequence
from typing import Any


class AgencyError(Exception):
    """Base of every error that agency raises on purpose."""


class InvalidInput(AgencyError):
    """Something a caller sent does not fit. `errors` is a list of `{"path", "message"}`."""

    def __init__(self, message: str, errors: list[dict[str, str]] | None = None) -> None:
        super().__init__(message)
        self.errors = errors or []


class ConfigurationError(AgencyError):
    """The project, environment or machine is not set up; the message says the fix."""


class NotDeployed(AgencyError):
    """A row needs something that this code does not have: a definition, an agent class, a way to read it.

    Another release may have it, so the row is held for that one.
    """


class UnknownDefinition(InvalidInput):
    """No definition is registered under this key."""


class IdempotencyConflict(AgencyError):
    """The idempotency key was used before with another body."""

    def __init__(self, message: str, execution_id: str) -> None:
        super().__init__(message)
        self.execution_id = execution_id


class StaleExecution(AgencyError):
    """A guarded write found that the row has moved on (or belongs to another claim)."""


class ModelError(AgencyError):
    """Base of what can go wrong in a call to a language model."""


class ModelUnavailable(ModelError):
    """Worth a retry: rate limit, overload, timeout, connection. `retry_after` in seconds.

    `is_limit` says that the provider is asked too often, and not that it is in trouble.
    """

    def __init__(self, message: str, retry_after: float | None = None, is_limit: bool = False) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.is_limit = is_limit


class ModelRefused(ModelError):
    """The provider will not answer this: a refusal, a wrong key, an unknown model."""


class ModelOutputInvalid(ModelError):
    """The model answered, but not in the promised shape. `raw` is what it said."""

    def __init__(self, message: str, raw: str = "") -> None:
        super().__init__(message)
        self.raw = raw


class ContextOverflow(ModelError):
    """The request is larger than the model's context."""


class ToolsUnavailable(AgencyError):
    """A source of tools (an MCP server) cannot give them now; the message names it and what is wrong."""


class RunSignal(BaseException):
    """Base of the signals that leave user code from the inside of a run."""


class RunCancelled(RunSignal):
    """Someone cancelled the run, or its claim was lost: stop now, write nothing more."""


class RunParked(RunSignal):
    """The run waits for a person; its claim is given up. `asked` are the calls that wait for an answer."""

    def __init__(self, reason: str, asked: Sequence[Any] = ()) -> None:
        super().__init__(reason)
        self.asked = asked


class RunReleased(RunSignal):
    """The run gives its claim back and is due again in `delay` seconds; the attempt does not count.

    `missing` names what the run could not reach: `"model"` or `"tools"`.
    """

    def __init__(self, reason: str, delay: float = 0.0, missing: str = "model") -> None:
        super().__init__(reason)
        self.reason = reason
        self.delay = delay
        self.missing = missing

"""Parameters of a tool that the run fills in and the model never sees."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agency.agent.context import ExecutionContext


class Injected:
    """Marker: a tool parameter annotated with a subclass is filled from `RunScope.resources`."""


@dataclass(frozen=True, slots=True)
class ToolCallInfo:
    """What a tool may want to know of its own call.

    `idempotency_key` is the same when the call is repeated after a crash: hand it to the service that is
    called. `deadline` is a `time.monotonic()` value or `None`.
    """

    tool_call_id: str
    idempotency_key: str
    deadline: float | None = None
    is_cancelled: Callable[[], bool] = field(default=lambda: False, repr=False)

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the result any more: the run was cancelled or the time is over."""
        return self.is_cancelled() or (self.deadline is not None and time.monotonic() >= self.deadline)


@dataclass(frozen=True, slots=True)
class HumanAnswer(Injected):
    """What a person answered. A call of a tool with a parameter of this type waits until somebody has."""

    value: Any


@dataclass(slots=True)
class InjectedParameter:
    """A hidden parameter: its type, and whether `None` or a default may stand in for a missing value."""

    type: type[Any]
    optional: bool


def is_injected(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, ExecutionContext | ToolCallInfo | Injected)


def fill(
    parameters: Mapping[str, InjectedParameter],
    context: ExecutionContext,
    info: ToolCallInfo,
    resources: Mapping[type, Any],
) -> dict[str, Any]:
    """The values of the hidden parameters; `LookupError` names what the run does not have."""
    values: dict[str, Any] = {}
    for name, parameter in parameters.items():
        if issubclass(parameter.type, ExecutionContext):
            values[name] = context
        elif issubclass(parameter.type, ToolCallInfo):
            values[name] = info
        else:
            found = _find(parameter.type, resources)
            if found is None and not parameter.optional:
                raise LookupError(f"this run has no {parameter.type.__name__} for the parameter `{name}`")
            if found is not None:
                values[name] = found
    return values


def _find(wanted: type[Any], resources: Mapping[type, Any]) -> Any:
    if wanted in resources:
        return resources[wanted]
    return next((value for value in resources.values() if isinstance(value, wanted)), None)

"""Which status may follow which: the one table that every guarded write of an execution uses."""

from agency.enums import ExecutionStatus

_S = ExecutionStatus

TRANSITIONS: dict[ExecutionStatus, frozenset[ExecutionStatus]] = {
    _S.PENDING: frozenset(),
    _S.IN_PROGRESS: frozenset({_S.PENDING, _S.IN_PROGRESS, _S.INTERRUPTED}),
    _S.INTERRUPTED: frozenset({_S.IN_PROGRESS}),
    _S.FINISHED: frozenset({_S.IN_PROGRESS}),
    _S.FAILED: frozenset({_S.PENDING, _S.IN_PROGRESS, _S.INTERRUPTED}),
    _S.CANCELLED: frozenset({_S.PENDING, _S.IN_PROGRESS, _S.INTERRUPTED}),
}
"""Target status -> the statuses it may be reached from. In progress to in progress is a new claim."""


def sources(target: ExecutionStatus) -> list[str]:
    """The statuses that `target` may follow, as `filter(status__in=...)` wants them."""
    return sorted(status.value for status in TRANSITIONS[target])


def may_follow(target: ExecutionStatus, source: ExecutionStatus) -> bool:
    return source in TRANSITIONS[target]

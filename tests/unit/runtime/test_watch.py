"""A run that is told to stop knows what for, however long it takes to leave."""

import time
import uuid

from agency.execution.claims import Claim
from agency.runtime.watch import StopReason, Watch


def watch(*, attempt: float, execution: float) -> Watch:
    """Whose attempt and execution must be over in so many seconds."""
    now = time.monotonic()
    claim = Claim(
        str(uuid.uuid4()), uuid.uuid4(), 1, "me", 1, deadline=now + execution, attempt_deadline=now + attempt
    )
    return Watch(claim, lease=60.0)


def test_an_attempts_end_is_not_taken_for_the_executions_when_the_beat_sees_it_first() -> None:
    late = watch(attempt=-1.0, execution=60.0)
    assert not late.is_stuck(patience=10.0)
    assert late.reason == StopReason.DEADLINE
    assert not late.is_over()


def test_an_execution_is_over_by_its_deadline_or_by_what_the_row_says() -> None:
    assert watch(attempt=-1.0, execution=-1.0).is_over()
    told = watch(attempt=60.0, execution=60.0)
    told.stop(StopReason.DEADLINE)
    assert told.is_over()

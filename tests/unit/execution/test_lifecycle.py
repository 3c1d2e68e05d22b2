"""The table of transitions."""

from agency.enums import TERMINAL_STATUSES, ExecutionStatus
from agency.execution.lifecycle import TRANSITIONS, may_follow, sources


def test_the_table_has_every_status_and_no_other():
    assert set(TRANSITIONS) == set(ExecutionStatus)


def test_nothing_follows_a_terminal_status():
    for allowed in TRANSITIONS.values():
        assert not allowed & TERMINAL_STATUSES


def test_only_a_run_that_is_in_progress_can_finish_or_wait_for_a_person():
    assert sources(ExecutionStatus.FINISHED) == ["in_progress"]
    assert sources(ExecutionStatus.INTERRUPTED) == ["in_progress"]


def test_every_open_status_can_fail_and_be_cancelled():
    for status in set(ExecutionStatus) - TERMINAL_STATUSES:
        assert may_follow(ExecutionStatus.FAILED, status)
        assert may_follow(ExecutionStatus.CANCELLED, status)


def test_nothing_becomes_pending_again():
    assert sources(ExecutionStatus.PENDING) == []

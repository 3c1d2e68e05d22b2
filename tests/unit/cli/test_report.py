"""The demo's table can be read on a narrow and on a wide terminal."""

import io

import pytest
from rich.console import Console

from agency.cli import report

TOLD = {
    "model": "local:default",
    "setup_s": 1.0,
    "first_finished_s": 2.0,
    "total_s": 3.0,
    "executions": [
        {
            "document": "invoice-office-supplies",
            "status": "finished",
            "output": {"kind": "invoice", "name": "Harbour Office Supplies Ltd", "vendor_id": None},
            "right": True,
            "attempts": 1,
            "failure_code": None,
            "failure_summary": None,
            "tokens": 3211,
            "seconds": 27.4,
        }
    ],
}


@pytest.mark.parametrize("width", [80, 140])
def test_document_and_result_are_shown_whole(width: int) -> None:
    out = Console(file=io.StringIO(), width=width)
    report.show(out, TOLD)
    text = out.file.getvalue()
    assert "kind invoice, name Harbour Office Supplies Ltd" in text
    assert all(word in text for word in ("invoice-office-supplies", "✓ finished", "3,211", "27.4"))
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    assert "1 of 1 documents right" in text


MISSION = {
    "name": "File the [tray]",
    "status": "failed",
    "loop_status": "limit_reached",
    "iterations": 6,
    "max_iterations": 6,
    "decision": {"status": "continue"},
    "failure_code": "limit_reached",
    "failure_summary": "The mission used all of its 6 iterations and was not complete.",
    "documents": [
        {"document": "meeting-note", "filed": {"kind": "cv", "name": "Jonas [b]Falk"}, "right": False},
        {"document": "invoice-garden", "filed": None, "right": False},
    ],
    "confirmed": 0,
    "tokens": 4321,
    "seconds": 12.0,
}


def shown(told: dict[str, object]) -> str:
    out = Console(file=io.StringIO(), width=200)
    report.show_mission(out, told)
    return out.file.getvalue()


def test_a_mission_that_ran_out_of_rounds_is_never_told_as_done() -> None:
    text = shown(MISSION)
    assert "✗ failed (limit reached) after 6 of at most 6 rounds" in text
    assert "Filed: meeting-note as cv of Jonas [b]Falk (wrong).\n" in text
    assert "limit_reached: The mission used all of its 6 iterations" in text
    assert "File the [tray]" in text and "Verified" not in text


def test_a_mission_that_is_done_says_what_bore_it_out() -> None:
    done = {"status": "finished", "loop_status": "completed", "failure_code": None, "failure_summary": None}
    text = shown(MISSION | done | {"decision": {"checks": {"passed": ["all-papers-filed"], "failed": None}}})
    assert "✓ finished (completed)" in text
    assert "Verified by all-papers-filed." in text


def test_a_mission_that_filed_nothing_says_so() -> None:
    assert "Filed: nothing." in shown(MISSION | {"documents": [], "decision": None})

"""`agency list`, `show`, `trace`, `cancel`: executions as a person at the terminal sees them."""

import json
from collections.abc import Callable
from typing import Any

from agency.models import Event, Iteration

Agency = Callable[..., Any]
Make = Callable[..., Any]


def test_an_empty_list_says_the_next_step(agency: Agency, db: None) -> None:
    called = agency("list")
    assert called.code == 0
    assert "agency run KEY" in called.out


def test_the_list_shows_executions_with_status_and_type(agency: Agency, execution: Make) -> None:
    row = execution(status="failed", iteration=2)
    called = agency("list")
    assert str(row.id)[:8] in called.out
    assert "✗ failed" in called.out
    assert "count-words" in called.out


def test_the_list_can_be_narrowed(agency: Agency, execution: Make) -> None:
    failed, _ = execution(status="failed"), execution()
    assert [row["id"] for row in json.loads(agency("list", "--status", "failed", "--json").out)] == [
        str(failed.id)
    ]
    assert json.loads(agency("list", "--key", "other", "--json").out) == []
    assert len(json.loads(agency("list", "--limit", "1", "--json").out)) == 1


def test_a_list_that_is_only_narrowed_to_nothing_says_so(agency: Agency, execution: Make) -> None:
    execution()
    called = agency("list", "--key", "other")
    assert "No executions yet" not in called.out
    assert "other" in called.out


def test_show_pads_no_line_in_a_pipe(agency: Agency, execution: Make) -> None:
    row = execution(status="finished", output={"words": 2})
    lines = agency("show", str(row.id)).out.splitlines()
    assert max(len(line) for line in lines) < 100


def test_an_unknown_status_is_a_usage_error(agency: Agency, db: None) -> None:
    called = agency("list", "--status", "done")
    assert called.code == 2
    assert "in_progress" in called.err


def test_show_takes_the_beginning_of_an_id(agency: Agency, execution: Make) -> None:
    row = execution(status="finished", output={"words": 2}, usage={"input_tokens": 1200, "output_tokens": 34})
    called = agency("show", str(row.id)[:8])
    assert called.code == 0
    assert str(row.id) in called.out
    assert '"words": 2' in called.out
    assert "1,200 in, 34 out" in called.out


def test_show_lists_the_attempts_and_what_the_validators_said(agency: Agency, execution: Make) -> None:
    row = execution(status="failed", failure_code="max_retries_exceeded", failure_summary="Could not count.")
    Iteration.objects.create(
        execution=row, n=1, claim_id=row.id, fence=1, verdict="retry", feedback="Count again.", event_seq=1,
        started_at=row.created_at,
    )  # fmt: skip
    called = agency("show", str(row.id))
    assert "max_retries_exceeded: Could not count." in called.out
    assert "Count again." in called.out


def test_show_as_json_is_what_the_api_serves(agency: Agency, execution: Make) -> None:
    row = execution()
    shown = json.loads(agency("show", str(row.id), "--json").out)
    assert shown["id"] == str(row.id)
    assert shown["attempts"] == []


def test_an_id_that_fits_none_or_several_says_what_to_do(agency: Agency, execution: Make) -> None:
    assert "agency list" in agency("show", "f").err
    one = execution(id="11111111-0000-4000-8000-000000000001")
    execution(id="11111111-0000-4000-8000-000000000002")
    several = agency("show", "1111")
    assert several.code == 2
    assert "more digits" in several.err
    assert agency("show", str(one.id)).code == 0


def test_what_is_no_id_is_refused(agency: Agency, db: None) -> None:
    called = agency("trace", "the-last-one")
    assert called.code == 2
    assert "no execution id" in called.err
    assert "Traceback" not in called.err


def test_trace_prints_the_story_and_the_ledger(agency: Agency, execution: Make) -> None:
    row = execution(status="finished")
    said = [{"type": "message", "role": "user", "content": "How many words?"}]
    Event.objects.create(execution=row, seq=1, author="user", content=said)
    called = agency("trace", str(row.id)[:8])
    assert "How many words?" in called.out
    assert called.out.rstrip().endswith("finished")
    assert called.out.count("How many words?") == 1


def test_trace_as_json_is_the_log(agency: Agency, execution: Make) -> None:
    row = execution()
    Event.objects.create(execution=row, seq=1, kind="execution_started", data={"attempt": 1})
    assert [event["kind"] for event in json.loads(agency("trace", str(row.id), "--json").out)] == [
        "execution_started"
    ]


def test_cancel_ends_what_nobody_runs(agency: Agency, execution: Make) -> None:
    row = execution()
    assert "cancelled" in agency("cancel", str(row.id)[:8]).out
    row.refresh_from_db()
    assert row.status == "cancelled"


def test_cancel_leaves_what_has_ended(agency: Agency, execution: Make) -> None:
    row = execution(status="finished")
    assert json.loads(agency("cancel", str(row.id), "--json").out)["status"] == "finished"

"""What the API shows of one execution: all its fields, its attempts, its log and its trace."""

from collections.abc import Callable
from uuid import uuid4

import pytest
from django.db.models.functions import Now

from agency.models import Blob, Event, Execution, Iteration
from tests.integration.api.conftest import ApiClient
from tests.integration.api.test_problems import paths, problem_of


@pytest.fixture
def finished(execution: Callable[..., Execution]) -> Execution:
    """A finished execution with one failed and one passed attempt, and a log of three events."""
    row = execution(status="finished", iteration=2, output={"words": 2}, input={"text": "a b"})
    for n, verdict, feedback in ((1, "retry", "Count again."), (2, "passed", None)):
        Iteration.objects.create(
            execution=row,
            n=n,
            claim_id=uuid4(),
            fence=n,
            verdict=verdict,
            feedback=feedback,
            event_seq=n,
            started_at=Now(),
            usage={"model_calls": n},
        )
    said = [{"type": "message", "role": "user", "content": "How many words?"}]
    Event.objects.create(execution=row, seq=1, kind="execution_started", data={"attempt": 1})
    Event.objects.create(execution=row, seq=2, author="user", content=said, iteration=1)
    Event.objects.create(execution=row, seq=3, kind="execution_finished", data={"attempts": 2})
    return row


def test_an_execution_shows_all_its_fields(api: ApiClient, finished: Execution) -> None:
    body = api.get(f"/executions/{finished.pk}").json()
    assert body["id"] == str(finished.pk)
    assert body["status"] == "finished"
    assert body["input"] == {"text": "a b"}
    assert body["output"] == {"words": 2}
    assert body["current_iteration"] == 2
    assert body["agent"] == str(finished.agent_id)
    assert body["agent_name"] == "Clerk"
    assert body["event_seq"] == 3
    assert body["finished_at"].endswith("Z")


def test_an_execution_shows_its_attempts_in_order(api: ApiClient, finished: Execution) -> None:
    attempts = api.get(f"/executions/{finished.pk}").json()["attempts"]
    assert [(a["n"], a["verdict"], a["feedback"]) for a in attempts] == [
        (1, "retry", "Count again."),
        (2, "passed", None),
    ]
    assert attempts[1]["usage"]["model_calls"] == 2


def test_the_log_can_be_read_on_after_any_event(api: ApiClient, finished: Execution) -> None:
    first = api.get(f"/executions/{finished.pk}/events", limit=2).json()
    assert [event["seq"] for event in first["items"]] == [1, 2]
    assert first["items"][1]["content"][0]["content"] == "How many words?"
    assert (first["after"], first["last_seq"], first["terminal"]) == (2, 3, True)
    rest = api.get(f"/executions/{finished.pk}/events", after=first["after"]).json()
    assert [event["kind"] for event in rest["items"]] == ["execution_finished"]
    assert api.get(f"/executions/{finished.pk}/events", after=3).json()["items"] == []


@pytest.mark.parametrize("after", ["-1", "x", str(2**63)])
def test_a_position_in_the_log_that_cannot_be_is_refused(
    api: ApiClient, finished: Execution, after: str
) -> None:
    assert paths(problem_of(api.get(f"/executions/{finished.pk}/events", after=after), 422)) == ["after"]


def test_the_trace_is_text_to_read(api: ApiClient, finished: Execution) -> None:
    response = api.get(f"/executions/{finished.pk}/trace")
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    text = response.content.decode()
    assert "How many words?" in text
    assert "attempt 1: retry – Count again." in text
    assert text.rstrip().endswith("finished")


def test_what_was_cut_can_be_read_whole_by_the_name_that_the_record_gives(
    api: ApiClient, finished: Execution
) -> None:
    sha256 = "ab" * 32
    Blob.objects.create(execution=finished, sha256=sha256, size=7, content="Grüße")
    answer = api.get(f"/executions/{finished.pk}/blobs/{sha256}")
    assert (answer.status_code, answer.content.decode()) == (200, "Grüße")
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert f"kept whole: {sha256} (7 bytes)" in api.get(f"/executions/{finished.pk}/trace").content.decode()
    problem_of(api.get(f"/executions/{finished.pk}/blobs/{'cd' * 32}"), 404)
    problem_of(api.get(f"/executions/{uuid4()}/blobs/{sha256}"), 404)

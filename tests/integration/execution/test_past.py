"""What a run goes on from is read as it was written, in two statements, whatever it holds."""

from typing import Any

import pytest
from django.db import connection

from agency.agent import Event, Message, ToolCall, ToolResult, Usage
from agency.agent.text import DEEPEST
from agency.execution import past, record
from agency.execution.claims import Claim
from agency.execution.event_rows import core_events
from agency.mission.course import REPEATS
from agency.models import ConfiguredAgent, Execution, Iteration, Mission
from agency.models.clock import Now
from agency.runtime.claim import claim
from tests.integration.mission.scripted import mission

pytestmark = pytest.mark.django_db


@pytest.fixture
def claimed(agency_agent: Any) -> Claim:
    agent: ConfiguredAgent = agency_agent("clerk")
    order = mission(agent, loop_prompt="Go on?", max_iterations=9)
    Mission.objects.filter(pk=order.pk).update(always_allow={"pay": True})
    got = claim(order.dispatch().pk)
    assert got is not None
    return got


def say(claimed: Claim, *content: Any, limit: int = 100_000, **more: Any) -> Event:
    event = Event(execution_id=claimed.execution_id, author="clerk", content=[*content], step=3, **more)
    record.record(claimed, record.Entry("1:key", events=[event]), limit)
    return event


def commit(execution: Execution, n: int) -> None:
    Iteration.objects.create(
        execution=execution, n=n, claim_id=execution.claim_id, fence=1, verdict="continue", event_seq=n,
        feedback=f"Do {n}.", state={"answer": f"Did {n}.", "at": [n, 0.1, None]}, started_at=Now(),
    )  # fmt: skip
    Execution.objects.filter(pk=execution.pk).update(iteration=n)


def test_events_are_read_as_they_were_written(claimed: Claim) -> None:
    said = [
        say(claimed, Message(role="user", content='Grüße "…"\n\\ \t 😀 %s {0}')),
        say(
            claimed,
            ToolCall(tool_call_id="c", name="pay", arguments={"sum": 0.1, "many": 2**70, "no": None}),
            usage=Usage(model_calls=1, input_tokens=7, cost=0.000123),
            call={"model": "m", "duration": 1e-06, "request": {"items": 1}},
        ),
        say(claimed, ToolResult(tool_call_id="c", name="pay", status="success", content=[1.5, {"": True}])),
    ]
    execution = past.read(claimed.execution_id).execution
    until = execution.events.order_by("-seq").values_list("seq", flat=True)[0]
    found = past.conversation(execution, until)
    assert [one.model_dump(exclude={"timestamp"}) for one in found] == [
        one.model_dump(exclude={"timestamp"}) for one in said
    ]
    assert found == core_events(execution.events.filter(kind="content").order_by("seq"))
    assert past.conversation(execution, until - 1) == found[:-1]
    assert past.conversation(execution, 0) == []


def test_an_event_that_was_cut_is_whole(claimed: Claim) -> None:
    said = say(claimed, Message(role="user", content="x" * 9_000), limit=3_000)
    found = past.conversation(past.read(claimed.execution_id).execution, 99)
    assert [one.text for one in found] == [said.text]


def test_a_result_may_be_nested_as_deep_as_it_is_stored(claimed: Claim) -> None:
    deep: Any = 1
    for _ in range(DEEPEST - 5):
        deep = [deep]
    say(claimed, ToolResult(tool_call_id="c", name="pay", status="success", content=deep))
    execution = past.read(claimed.execution_id).execution
    rows = execution.events.filter(kind="content").order_by("seq")
    assert past.conversation(execution, 99) == core_events(rows)


def test_the_row_comes_with_its_last_iterations_and_what_is_allowed(claimed: Claim) -> None:
    row = Execution.objects.get(pk=claimed.execution_id)
    assert past.read(row.pk).recent == []
    for n in (1, 2, 3):
        commit(row, n)
    say(claimed, Message(role="user", content="Grüße"))
    read = past.read(row.pk)
    row = Execution.objects.get(pk=row.pk)
    assert {*past._ROW} == {*vars(read.execution)} - {"_state"}
    for name in past._ROW:
        assert getattr(read.execution, name) == getattr(row, name), name
    assert read.execution.owner_id == row.owner_id
    assert [one.n for one in read.recent] == [3, 2]
    for one, stored in zip(read.recent, row.iterations.order_by("-n"), strict=False):
        assert [getattr(one, name) for name in past._ITERATION] == [
            getattr(stored, name) for name in past._ITERATION
        ]
    assert read.allowed == {"pay": True}


@pytest.mark.parametrize("text", ["Grüße", "x" * 9_000])
def test_how_much_is_stored_counts_the_bytes_of_events_and_of_what_was_cut_from_them(
    claimed: Claim, text: str
) -> None:
    before = past.read(claimed.execution_id).stored
    say(claimed, Message(role="user", content=text), limit=3_000)
    row = Execution.objects.get(pk=claimed.execution_id).events.get(kind="content")
    as_bytes = {"postgresql": "convert_to(content::text, 'UTF8')", "sqlite": "CAST(content AS BLOB)"}
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {as_bytes[connection.vendor]} FROM {row._meta.db_table} WHERE id = %s", [row.pk]
        )
        held = len(bytes(cursor.fetchone()[0]))
    blobs = sum(len(blob.content.encode()) for blob in row.execution.blobs.all())
    assert (blobs > 0) == (len(text) > 3_000)
    assert past.read(claimed.execution_id).stored == before + held + blobs


def test_as_many_iterations_are_read_as_the_rule_against_standing_still_needs() -> None:
    assert past.RECENT >= REPEATS - 1


def test_two_statements_read_it_however_long_it_is(claimed: Claim) -> None:
    for n in range(20):
        say(claimed, Message(role="user", content=str(n)))
    asked: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        asked.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(note):
        read = past.read(claimed.execution_id)
        assert len(past.conversation(read.execution, 99)) == 20
    assert len(asked) == 2


def test_a_row_that_is_gone_is_missed(claimed: Claim) -> None:
    with pytest.raises(Execution.DoesNotExist):
        past.read("00000000-0000-4000-8000-000000000000")

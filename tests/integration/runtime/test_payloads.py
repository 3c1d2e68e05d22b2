"""Large bodies: cut where a model and a row take them in, whole beside the row, the same after a crash."""

from typing import Any

import pytest

from agency.agent import Agent, ExecutionContext, LlmRequest, LlmResponse, Message, RunScope, tool
from agency.agent.testing import ScriptedLlm, call
from agency.api.trace import execution_trace
from agency.execution import ToolScratchpad, past
from agency.execution.event_rows import core_events
from agency.models import Blob, Execution
from agency.models.clock import Now
from agency.runtime.claim import claim
from agency.runtime.journal import DbJournal
from tests.integration.rows import forget
from tests.integration.runtime.conftest import Submit

pytestmark = pytest.mark.django_db
HUGE = "0123456789" * 5_000_000


class Watcher(ScriptedLlm):
    """Keeps what it was sent."""

    def __init__(self, *answers: Any) -> None:
        super().__init__(*answers)
        self.sent: list[list[Any]] = []

    def generate(self, request: LlmRequest) -> LlmResponse:
        self.sent.append([item.model_dump(mode="json") for item in request.contents])
        return super().generate(request)


@tool(effect="read")
def fetch(size: int) -> str:
    """Fetch much."""
    return HUGE[:size]


@tool(effect="idempotent", parallel=False)
def push(size: int) -> dict[str, str]:
    """Push much."""
    return {"pushed": HUGE[:size]}


def run(execution: Execution, llm: ScriptedLlm) -> ExecutionContext:
    """The run of a new claimer; an earlier one is dead."""
    Execution.objects.filter(pk=execution.pk, claim_id__isnull=False).update(lease_until=Now(-1))
    claimed = claim(execution.pk)
    assert claimed is not None
    context = ExecutionContext(str(execution.pk))
    journal = DbJournal(claimed, ToolScratchpad(), context, past.read(claimed.execution_id).stored)
    scope = RunScope(journal=journal, payloads=journal.payloads)
    Agent("clerk", llm, tools=[fetch, push], scope=scope).run("go", context)
    return context


def test_a_result_of_50_mb_is_cut_in_the_row_and_whole_beside_it(submit: Submit) -> None:
    execution = submit()
    context = run(execution, ScriptedLlm(call("fetch", "c", size=len(HUGE)), "done"))
    (result,) = context.events[2].tool_results
    assert len(result.content) < 101_000
    blob = Blob.objects.get(execution=execution)
    assert blob.content == HUGE
    assert blob.size == len(HUGE)
    note = "[cut here: 50,000,000 characters in all, the first 100,000 are shown; the whole is kept as"
    assert result.content.endswith(f"{note} {blob.sha256}]")
    rows = execution.events.filter(kind="content").order_by("seq")
    assert core_events(rows)[2].tool_results == [result]
    assert len(HUGE) < past.read(str(execution.pk)).stored < len(HUGE) + 110_000
    assert blob.sha256 in execution_trace(execution)


def test_after_a_crash_the_model_is_sent_what_it_was_sent_before(submit: Submit, settings: Any) -> None:
    settings.AGENCY = {"RESULT_LIMIT": 50, "EVENT_LIMIT": 3_000}
    execution = submit()
    first = Watcher(
        [call("push", "a", size=500), call("push", "b", size=700)],
        [Message(role="assistant", content="x" * 5_000), call("fetch", "c", size=900)],
        "done",
    )
    whole = run(execution, first)
    assert forget(execution, execution.events.last().data["key"]) == 1
    second = Watcher("done")
    again = run(execution, second)
    assert second.sent == first.sent[-1:]
    assert [event.content for event in again.events] == [event.content for event in whole.events]


def test_a_large_event_is_short_in_its_row_and_whole_for_the_run(submit: Submit, settings: Any) -> None:
    settings.AGENCY = {"EVENT_LIMIT": 10_000}
    execution = submit()
    said = "Grüße " * 5_000
    run(execution, ScriptedLlm(said))
    row = execution.events.get(kind="content", author="clerk")
    blob = Blob.objects.get(execution=execution)
    assert row.data["blob"] == blob.sha256
    assert f"the whole event is kept as {blob.sha256}" in row.content[0]["content"]
    assert len(row.content[0]["content"]) < 2_500
    (event,) = core_events([row])
    assert event.text == said
    assert len(execution.thread.messages.last().content) < 2_500


def test_an_event_of_too_many_texts_to_cut_says_only_where_they_are(submit: Submit, settings: Any) -> None:
    settings.AGENCY = {"EVENT_LIMIT": 5_000}
    execution = submit()
    calls = [call("fetch", f"c{n}", size=n) for n in range(60)]
    context = run(execution, ScriptedLlm(calls, "done"))
    row = execution.events.filter(kind="content", author="clerk").first()
    assert row.content[0]["content"].startswith("[")
    assert core_events([row])[0].tool_calls == context.events[1].tool_calls


def test_equal_bodies_are_kept_once(submit: Submit, settings: Any) -> None:
    settings.AGENCY = {"RESULT_LIMIT": 100}
    execution = submit()
    run(execution, ScriptedLlm([call("fetch", str(n), size=200) for n in range(3)], "done"))
    assert Blob.objects.filter(execution=execution).count() == 1


def test_a_run_that_holds_enough_keeps_no_more_and_takes_in_little(submit: Submit, settings: Any) -> None:
    settings.AGENCY = {"RESULT_LIMIT": 5_000, "RUN_LIMIT": 9_000}
    execution = submit()
    calls = [call("fetch", str(n), size=6_000 + n) for n in range(3)]
    context = run(execution, ScriptedLlm(*calls, "done"))
    first, second, third = (event.tool_results[0].content for event in context.events if event.tool_results)
    assert "kept as" in first
    assert second.endswith("[cut here: 6,001 characters in all, the first 2,000 are shown]")
    assert third.endswith("[cut here: 6,002 characters in all, the first 2,000 are shown]")
    assert Blob.objects.filter(execution=execution).count() == 1


def test_a_secret_in_a_large_body_is_masked_in_every_part(submit: Submit, settings: Any) -> None:
    @tool(effect="read")
    def leak() -> dict[str, str]:
        return {"text": "x" * 300, "password": "canary-4711", "url": "https://me:canary-4711@example.org/"}

    settings.AGENCY = {"RESULT_LIMIT": 100}
    execution = submit()
    claimed = claim(execution.pk)
    assert claimed is not None
    context = ExecutionContext(str(execution.pk))
    journal = DbJournal(claimed, ToolScratchpad(), context, past.read(claimed.execution_id).stored)
    scope = RunScope(journal=journal, payloads=journal.payloads)
    Agent("clerk", ScriptedLlm(call("leak"), "done"), tools=[leak], scope=scope).run("go", context)
    assert "canary" not in Blob.objects.get(execution=execution).content
    assert "canary" not in str(context.events)


def test_a_journal_of_a_newer_form_is_not_gone_on_with(submit: Submit) -> None:
    from agency.runtime.body import Outcome, run_claimed

    execution = submit()
    assert execution.journal_version == 1
    run(execution, ScriptedLlm("done"))
    execution.refresh_from_db()
    assert execution.journal_version == 3
    Execution.objects.filter(pk=execution.pk).update(journal_version=4, lease_until=Now(-1))
    claimed = claim(execution.pk)
    assert claimed is not None
    assert run_claimed(claimed) is Outcome.HELD
    execution.refresh_from_db()
    assert "its journal has version 4" in str(execution.metadata)

"""A project's definition from order to result, as its own tests would run it."""

from collections.abc import Callable
from typing import Any

import pytest

from agency.agent.testing import ScriptedLlm, call
from agency.api.trace import execution_trace
from agency.execution import service
from agency.execution.signals import execution_finished
from agency.models import ConfiguredAgent, Execution
from agency.testing import run_until_parked
from tests.project.executions import CountWords, ShelveBooks, Summarise

pytestmark = pytest.mark.django_db
Script = Callable[..., ScriptedLlm]
MakeAgent = Callable[..., ConfiguredAgent]


@pytest.fixture
def clerk(agency_agent: MakeAgent) -> ConfiguredAgent:
    return agency_agent("clerk", prompt_variables={"office": "the port"})


def user_messages(execution: Execution) -> list[str]:
    return [row.content[0]["content"] for row in execution.events.filter(author="user").order_by("seq")]


def test_a_wrong_answer_is_corrected_with_what_the_tool_left_for_the_validator(
    clerk: ConfiguredAgent, scripted_llm: Script
):
    llm = scripted_llm(call("count_words", text="one two three"), '{"words": 4}', '{"words": "3"}')
    execution = run_until_parked(CountWords.submit(clerk, {"text": "one two three"}))
    assert (execution.status, execution.output) == ("finished", {"words": 3})
    assert user_messages(execution)[1] == "The tool counted 3 words; say that number."
    assert [row.verdict for row in execution.iterations.order_by("n")] == ["retry", "passed"]
    assert llm.requests[0].instructions == ["You work for the port. Be brief."]
    assert [spec.name for spec in llm.requests[0].tools] == ["count_words", "stop_execution"]
    assert "scratchpad" not in llm.requests[0].tools[0].parameters["properties"]


def test_the_agent_may_stop_and_its_reason_is_the_summary(clerk: ConfiguredAgent, scripted_llm: Script):
    llm = scripted_llm(call("stop_execution", stop_reason="This is a picture."), "never said")
    execution = run_until_parked(CountWords.submit(clerk, {"text": "x"}))
    assert (execution.status, execution.failure_code) == ("failed", "validation_failed")
    assert execution.failure_summary == "This is a picture."
    assert execution.iteration == 1
    assert llm.remaining == 1


def test_an_agent_that_never_gets_it_right_fails_with_its_own_account(
    clerk: ConfiguredAgent, scripted_llm: Script
):
    scripted_llm("a", "b", "c", "I cannot count.")
    execution = run_until_parked(CountWords.submit(clerk, {"text": "x"}))
    assert (execution.status, execution.failure_code) == ("failed", "max_retries_exceeded")
    assert execution.failure_summary == "I cannot count."
    assert [row.verdict for row in execution.iterations.order_by("n")] == ["retry", "retry", "failed"]


def test_an_attempt_may_ask_several_questions(clerk: ConfiguredAgent, scripted_llm: Script):
    scripted_llm("I read it.", "It is about rain.")
    execution = run_until_parked(Summarise.submit(clerk, {"text": "rain, rain"}))
    assert execution.output == {"response": "It is about rain."}
    assert len(user_messages(execution)) == 2


def test_a_definition_may_take_the_agents_tools_away(agency_agent: MakeAgent, scripted_llm: Script):
    llm = scripted_llm('"shelved"')
    execution = run_until_parked(ShelveBooks.submit(agency_agent("librarian"), {}))
    assert execution.output == {"value": "shelved"}
    assert llm.requests[0].tools == []


def test_a_foreign_error_is_shown_by_its_type_and_found_by_its_reference(
    clerk: ConfiguredAgent, scripted_llm: Script, monkeypatch: pytest.MonkeyPatch
):
    def fails(self: Any, input_data: Any, conversation: Any) -> str:
        raise LookupError("no such ledger: /srv/ledger")

    scripted_llm()
    monkeypatch.setattr(Summarise, "execute", fails)
    execution = run_until_parked(Summarise.submit(clerk, {"text": "x"}))
    assert (execution.status, execution.failure_code) == ("failed", "runtime_error")
    assert "LookupError" in execution.failure_summary
    assert "/srv/ledger" not in execution.failure_summary
    event = execution.events.exclude(error=None).get()
    assert str(event.event_id) in execution.failure_summary
    assert "/srv/ledger" in event.error["message"]


def test_a_batch_runs_each_order_by_itself(clerk: ConfiguredAgent, scripted_llm: Script):
    scripted_llm("read", "one", "read", "two")
    batch = service.submit_batch(Summarise, clerk, [{"text": "a"}, {"text": "b"}])
    ended = [run_until_parked(one.execution) for one in batch]
    assert [one.output["response"] for one in ended] == ["one", "two"]


def test_the_end_is_announced_with_the_row(
    clerk: ConfiguredAgent, scripted_llm: Script, django_capture_on_commit_callbacks: Any
):
    heard: list[tuple[Any, str]] = []

    def listen(execution: Execution, **_: Any) -> None:
        heard.append((execution.pk, execution.status))

    scripted_llm("read", "done")
    execution = Summarise.submit(clerk, {"text": "x"})
    execution_finished.connect(listen)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            run_until_parked(execution)
    finally:
        execution_finished.disconnect(listen)
    assert heard == [(execution.pk, "finished")]


def test_a_provider_that_can_is_asked_for_the_output_type(clerk: ConfiguredAgent, scripted_llm: Script):
    able = scripted_llm('{"words": 2}', output_mode="native")
    execution = run_until_parked(CountWords.submit(clerk, {"text": "two words"}))
    assert execution.status == "finished"
    schema = able.requests[0].output_schema
    assert schema is not None and schema.name == "WordCount"


def test_a_summary_is_asked_for_in_plain_words(clerk: ConfiguredAgent, scripted_llm: Script):
    wrong = ['{"words": "x"}'] * 3
    able = scripted_llm(*wrong, "It could not count.", output_mode="native")
    execution = run_until_parked(CountWords.submit(clerk, {"text": "two words"}))
    assert execution.failure_summary == "It could not count."
    assert able.requests[-1].output_schema is None


def test_the_trace_of_rows_counts_the_steps_of_the_run(clerk: ConfiguredAgent, scripted_llm: Script):
    scripted_llm(call("count_words", text="one two"), '{"words": 2}')
    execution = run_until_parked(CountWords.submit(clerk, {"text": "one two"}))
    assert "2 steps (limit 10 a turn)" in execution_trace(execution).splitlines()[0]

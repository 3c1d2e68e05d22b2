"""What a definition talks through: delivery of feedback, answers as text, usage and the record."""

from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel

from agency.agent import (
    Agent,
    BaseTool,
    Event,
    ExecutionContext,
    Limits,
    McpServer,
    ModelUnavailable,
    RunScope,
    ToolCall,
    Usage,
    tool,
)
from agency.agent.testing import ScriptedLlm, call
from agency.enums import Verdict
from agency.errors import InvalidInput, RunParked, RunReleased
from agency.execution import Conversation, ToolScratchpad, TurnFailed
from tests.unit.execution.definitions import Ledger, conversation, llm, sent


def closed_once(*answers: Any, opening: str | None = "A", **options: Any) -> Conversation:
    """A conversation whose first attempt opened with `opening` and was sent back with "fix it"."""
    talk = conversation("one", *answers, **options)
    if opening is not None:
        talk.ask(opening)
    talk.close_attempt(Verdict.RETRY, "fix it")
    return talk


def test_asking_returns_the_answer_as_text_and_keeps_both_sides():
    talk = conversation("It rained.")
    assert talk.ask("How was it?") == "It rained."
    assert [event.text for event in talk.context.events] == ["How was it?", "It rained."]


def test_a_retry_that_opens_with_the_same_message_sends_the_feedback_alone():
    talk = closed_once("two")
    assert (talk.attempt, talk.feedback) == (2, "fix it")
    talk.ask("A")
    assert sent(talk) == ["A", "fix it"]


def test_a_retry_that_opens_otherwise_sends_feedback_and_message_as_one():
    talk = closed_once("two")
    talk.ask("B")
    assert sent(talk) == ["A", "fix it\n\nB"]


def test_only_the_first_message_of_an_attempt_carries_the_feedback():
    talk = closed_once("two", "three")
    talk.ask("A")
    assert talk.feedback is None
    talk.ask("A")
    assert sent(talk) == ["A", "fix it", "A"]


def test_the_opening_is_compared_with_the_last_attempts_not_with_what_was_sent():
    talk = closed_once("two", "three")
    talk.ask("A")
    talk.close_attempt(Verdict.RETRY, "still wrong")
    talk.ask("A")
    assert sent(talk) == ["A", "fix it", "still wrong"]


def test_the_opening_is_known_again_after_a_restart_although_its_secret_was_not_kept():
    kept = "Log in with password=[redacted]"
    talk = conversation("two", attempt=2, feedback="fix it", previous_opening=kept)
    talk.ask("Log in with password=swordfish")
    assert sent(talk) == ["fix it"]


def test_an_opening_of_two_attempts_ago_is_not_the_last_attempts():
    talk = closed_once("two", "three")
    talk.ask("B")
    talk.close_attempt(Verdict.RETRY, "still wrong")
    talk.ask("A")
    assert sent(talk)[-1] == "still wrong\n\nA"


def test_the_first_attempt_has_no_feedback():
    talk = conversation("one")
    assert (talk.attempt, talk.feedback) == (1, None)


class Rain(BaseModel):
    mm: int
    day: date


def test_a_typed_answer_comes_as_json_text():
    talk = conversation(call("final_answer", mm=3, day="2026-03-12"), output_type=Rain)
    assert talk.ask("How was it?") == '{"mm":3,"day":"2026-03-12"}'


@pytest.mark.parametrize(("value", "text"), [(0, "0"), ("", ""), (False, "false")])
def test_a_falsy_answer_is_an_answer(value: Any, text: str):
    @tool(return_direct=True)
    def give() -> Any:
        """Give the answer."""
        return value

    assert conversation(call("give"), tools=[give]).ask("go") == text


def test_tools_get_the_conversations_scratchpad():
    @tool
    def note(value: int, pad: ToolScratchpad) -> str:
        """Note a value."""
        pad.record("noted", value)
        return "ok"

    talk = conversation(call("note", value=5), "done", tools=[note])
    talk.ask("go")
    assert talk.scratchpad.read("noted") == 5
    assert "pad" not in llm(talk).requests[0].tools[0].parameters["properties"]


def test_a_conversation_starts_with_an_empty_scratchpad_also_with_a_used_agent():
    agent = Agent("clerk", ScriptedLlm("a"))
    Conversation(agent).scratchpad.record("old", 1)
    assert Conversation(agent).scratchpad.read("old") is None


def test_a_limit_ends_the_turn_and_names_itself():
    talk = conversation(call("x"), call("x"), limits=Limits(max_model_calls=1))
    with pytest.raises(TurnFailed, match="max_model_calls") as failed:
        talk.ask("go")
    assert failed.value.code == "limit_reached"


def test_a_call_that_needs_a_person_parks_the_run():
    class Pay(BaseTool):
        NAME = "pay"
        REQUIRES_CONFIRMATION = True

        def run(self, amount: int) -> str:
            return f"paid {amount}"

    with pytest.raises(RunParked):
        conversation(call("pay", amount=3), tools=[Pay]).ask("go")


def test_an_unavailable_model_without_a_time_leaves_the_delay_to_the_runtime():
    with pytest.raises(RunReleased) as released:
        conversation(ModelUnavailable("busy")).ask("go")
    assert released.value.delay == 0


def test_an_mcp_server_that_cannot_be_reached_leaves_the_run_to_a_later_time():
    server = McpServer(name="files", command=["no-such-program"])
    with pytest.raises(RunReleased, match=r"'files' cannot be used: .*no-such-program"):
        conversation("never asked", tools=[server]).ask("go")


def test_the_summary_is_one_call_without_tools_after_the_pending_feedback():
    talk = closed_once("It was too hard.")
    assert talk.summarise("Why?") == "It was too hard."
    assert sent(talk)[-1] == "fix it\n\nWhy?"
    assert llm(talk).requests[-1].tools == []


def test_a_summary_that_calls_a_tool_is_no_summary():
    talk = closed_once(call("stop_execution", stop_reason="x"), "late")
    with pytest.raises(TurnFailed):
        talk.summarise("Why?")
    assert llm(talk).remaining == 1


def test_usage_counts_the_current_attempt_only():
    ledger = Ledger()
    talk = conversation("one", "two", ledger=ledger)
    talk.ask("A")
    talk.add_usage(Usage(model_calls=1, cost=0.5))
    first = talk.usage
    assert first.model_calls == 2
    assert first.cost == 0.5
    talk.close_attempt(Verdict.RETRY, "fix it")
    assert ledger.closed[0].usage == first
    assert talk.usage == Usage()
    talk.ask("A")
    assert talk.usage.model_calls == 1


def test_a_closed_attempt_keeps_what_the_next_claimer_needs():
    ledger = Ledger()
    talk = conversation("one", ledger=ledger)
    talk.context.state["seen"] = [1]
    talk.ask("A")
    talk.close_attempt(Verdict.RETRY, "fix it", "odd")
    (closed,) = ledger.closed
    assert closed.state == {"opening": "A", "context_state": {"seen": [1]}, "current_step": 1}
    assert (closed.feedback, closed.failure_code) == ("fix it", "odd")


def test_state_that_is_no_json_is_named_before_the_attempt_is_closed():
    ledger = Ledger()
    talk = conversation("one", ledger=ledger)
    talk.context.state["when"] = date(2026, 3, 12)
    with pytest.raises(InvalidInput, match="'when'"):
        talk.close_attempt(Verdict.RETRY, "fix it")
    assert ledger.closed == []


class Writing:
    """A journal that keeps what was recorded."""

    scope = "run"

    def __init__(self) -> None:
        self.written: list[tuple[str, list[Event]]] = []

    def recall(self, key: str) -> None:
        return None

    def intend(self, key: str, effect: Any, idempotency_key: str) -> None:
        return None

    def record(self, key: str, result: Any, events: Any, settles: Any = ()) -> None:
        self.written.append((key, list(events)))


def test_an_error_is_journaled_with_its_first_line_and_what_was_being_done():
    journal = Writing()
    agent = Agent("clerk", ScriptedLlm(), scope=RunScope(journal=journal))
    talk = Conversation(agent, context=ExecutionContext(execution_id="e1"))
    reference = talk.record_error(ValueError("first\nsecond"), "execute()")
    ((key, (event,)),) = journal.written
    assert key == f"error:{reference}"
    assert (event.id, event.execution_id, event.author) == (reference, "e1", "clerk")
    assert event.error is not None
    assert event.error.message == "execute(): ValueError: first"
    assert talk.context.events == [event]


def test_the_model_does_not_see_recorded_errors():
    talk = conversation("fine")
    talk.record_error(ValueError("secret"), "execute()")
    talk.ask("go")
    assert [item.content for item in llm(talk).requests[0].contents] == ["go"]


def test_a_dangling_call_is_no_part_of_an_answer():
    talk = conversation([ToolCall(tool_call_id="1", name="unknown")], "sorry")
    assert talk.ask("go") == "sorry"

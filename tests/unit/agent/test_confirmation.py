"""Calls that a person must confirm: the run stops, says what is pending, and goes on with the decisions."""

from typing import Any

import pytest

from agency.agent import Agent, Confirmation, ExecutionContext, Message, RunStatus, tool
from agency.agent.testing import ScriptedLlm, call
from agency.errors import InvalidInput


class Shop:
    def __init__(self, confirmation: Any = True) -> None:
        self.done: list[int] = []

        @tool(requires_confirmation=confirmation)
        def refund(amount: int) -> str:
            self.done.append(amount)
            return f"refunded {amount}"

        @tool
        def look() -> str:
            self.done.append(-1)
            return "seen"

        self.tools = [refund, look]


def paused(shop: Shop, *answers: Any) -> tuple[Agent, ExecutionContext, ScriptedLlm]:
    llm = ScriptedLlm(*answers)
    agent = Agent("clerk", llm, tools=shop.tools)
    result = agent.run("go")
    assert result.status is RunStatus.INTERRUPTED
    return agent, result.context, llm


def test_a_call_that_needs_a_person_interrupts_the_run_and_is_pending() -> None:
    shop = Shop()
    result = Agent("clerk", ScriptedLlm(call("refund", "r", amount=5)), tools=shop.tools).run("go")
    assert (result.status, result.stop_reason) == (RunStatus.INTERRUPTED, "confirmation")
    assert [one.tool_call_id for one in result.pending] == ["r"]
    assert shop.done == []


def test_the_other_calls_of_the_response_are_run_at_once() -> None:
    shop = Shop()
    agent, context, llm = paused(shop, [call("refund", "r", amount=5), call("look", "l")], "done")
    assert shop.done == [-1]
    result = agent.run(context=context, confirmations=[Confirmation("r", "approve")])
    assert result.output == "done"
    assert [item.type for item in llm.requests[1].contents] == ["message", "tool_call", "tool_call"] + [
        "tool_result"
    ] * 2


def test_an_approved_call_is_run_in_the_same_step() -> None:
    shop = Shop()
    agent, context, _ = paused(shop, call("refund", "r", amount=5), "done")
    assert context.current_step == 0
    result = agent.run(context=context, confirmations=[Confirmation("r", "approve")])
    assert (result.output, shop.done, context.current_step) == ("done", [5], 2)


def test_edited_arguments_are_run_and_kept_beside_the_proposed_ones() -> None:
    shop = Shop()
    agent, context, _ = paused(shop, call("refund", "r", amount=500), "done")
    agent.run(context=context, confirmations=[Confirmation("r", "approve", {"amount": 5})])
    assert shop.done == [5]
    assert context.events[1].tool_calls[0].arguments == {"amount": 500}
    assert context.events[2].call == {
        "decisions": {"r": "approve"},
        "effective_arguments": {"r": {"amount": 5}},
    }


def test_edits_that_do_not_fit_are_refused_by_field() -> None:
    shop = Shop()
    agent, context, _ = paused(shop, call("refund", "r", amount=5))
    with pytest.raises(InvalidInput, match="amount: Input should be a valid integer"):
        agent.run(context=context, confirmations=[Confirmation("r", "approve", {"amount": "much"})])
    assert shop.done == []


def test_the_reason_of_a_rejection_reaches_the_model() -> None:
    shop = Shop()
    agent, context, llm = paused(shop, call("refund", "r", amount=5), "understood")
    result = agent.run(context=context, confirmations=[Confirmation("r", "reject", reason="too late")])
    assert result.output == "understood"
    assert shop.done == []
    assert llm.requests[1].contents[-1].model_dump()["content"] == "A person rejected this call: too late"


def test_partial_decisions_leave_the_rest_pending() -> None:
    shop = Shop()
    agent, context, _ = paused(shop, [call("refund", "a", amount=1), call("refund", "b", amount=2)], "done")
    result = agent.run(context=context, confirmations=[Confirmation("b", "approve")])
    assert result.status is RunStatus.INTERRUPTED
    assert [one.tool_call_id for one in result.pending] == ["a"]
    assert shop.done == [2]
    assert agent.run(context=context, confirmations=[Confirmation("a", "approve")]).output == "done"
    assert shop.done == [2, 1]


def test_going_on_without_a_decision_stays_interrupted_and_asks_no_model() -> None:
    agent, context, llm = paused(Shop(), call("refund", "r", amount=5))
    assert agent.run(context=context).status is RunStatus.INTERRUPTED
    assert len(llm.requests) == 1


def test_new_input_while_a_call_is_pending_is_refused() -> None:
    agent, context, _ = paused(Shop(), call("refund", "r", amount=5))
    with pytest.raises(InvalidInput, match=r"refund \(r\)"):
        agent.run("something else", context)


def test_new_input_may_drop_the_pending_calls_if_the_caller_says_so() -> None:
    shop = Shop()
    agent, context, llm = paused(shop, call("refund", "r", amount=5), "moving on")
    assert agent.run("never mind", context, discard_pending=True).output == "moving on"
    assert [item.type for item in llm.requests[1].contents] == [
        "message",
        "tool_call",
        "tool_result",
        "message",
    ]
    assert shop.done == []


def test_a_confirmation_for_a_call_that_is_not_pending_is_refused() -> None:
    agent, context, _ = paused(Shop(), call("refund", "r", amount=5))
    with pytest.raises(InvalidInput, match="'other': no such call is pending"):
        agent.run(context=context, confirmations=[Confirmation("other", "approve")])


def test_a_predicate_decides_by_the_arguments() -> None:
    shop = Shop(lambda arguments: arguments["amount"] > 10)
    llm = ScriptedLlm(call("refund", "a", amount=5), call("refund", "b", amount=50))
    result = Agent("clerk", llm, tools=shop.tools).run("go")
    assert (result.status, shop.done) == (RunStatus.INTERRUPTED, [5])


def test_a_predicate_that_raises_counts_as_yes() -> None:
    shop = Shop(lambda arguments: arguments["missing"])
    result = Agent("clerk", ScriptedLlm(call("refund", amount=5)), tools=shop.tools).run("go")
    assert (result.status, shop.done) == (RunStatus.INTERRUPTED, [])


def test_wrong_arguments_are_answered_at_once_and_ask_no_person() -> None:
    shop = Shop()
    result = Agent("clerk", ScriptedLlm(call("refund", amount="much"), "sorry"), tools=shop.tools).run("go")
    assert (result.output, shop.done) == ("sorry", [])
    assert "amount: Input should be a valid integer" in result.context.events[2].tool_results[0].content


def test_a_paused_context_that_was_stored_and_loaded_goes_on() -> None:
    from agency.agent import Event

    shop = Shop()
    agent, context, _ = paused(shop, call("refund", "r", amount=5), "done")
    stored = [event.model_dump_json() for event in context.events]
    loaded = ExecutionContext(context.execution_id, [Event.model_validate_json(text) for text in stored])
    assert agent.run(context=loaded, confirmations=[Confirmation("r", "approve")]).output == "done"
    assert isinstance(loaded.events[-1].content[0], Message)


@pytest.mark.parametrize("word", ["denied", "yes", "", None, True])
def test_a_decision_that_nobody_knows_is_no_approval(word: Any):
    with pytest.raises(InvalidInput, match="decide 'approve', 'reject' or 'answer'"):
        Confirmation("c", word)


@pytest.mark.parametrize("word", ["reject", "answer"])
def test_only_an_approval_has_arguments(word: Any):
    with pytest.raises(InvalidInput, match="arguments are for 'approve'"):
        Confirmation("c", word, {"n": 1})


def test_decisions_that_cannot_all_be_meant_are_refused_and_nothing_runs():
    done: list[int] = []

    @tool(requires_confirmation=True)
    def pay(n: int) -> str:
        done.append(n)
        return "paid"

    agent = Agent("clerk", ScriptedLlm(call("pay", "c", n=1), "ok"), tools=[pay])
    paused = agent.run("go").context
    yes, no = Confirmation("c", "approve"), Confirmation("c", "reject")
    with pytest.raises(InvalidInput, match="two different decisions on 'c'"):
        agent.run(context=paused, confirmations=[yes, no])
    with pytest.raises(InvalidInput, match=r"a decision on pay \(c\), which new user_input would drop"):
        agent.run("and now?", paused, [yes])
    assert (done, len(paused.events)) == ([], 2)
    assert agent.run(context=paused, confirmations=[yes, yes]).output == "ok"

"""Questions to a person: pending like a confirmation, answered by a decision, refused if it does not fit."""

import pytest

from agency.agent import Agent, Confirmation, HumanAnswer, RunStatus, tool
from agency.agent.builtins import ask_human
from agency.agent.testing import ScriptedLlm, call
from agency.errors import InvalidInput


@tool(requires_confirmation=True)
def refund(amount: int) -> str:
    return f"refunded {amount}"


def asking(*answers: object) -> Agent:
    return Agent("clerk", ScriptedLlm(*answers), tools=[ask_human, refund])


def test_the_model_sees_question_and_choices_but_no_answer() -> None:
    assert set(ask_human.spec.parameters["properties"]) == {"question", "choices"}
    assert ask_human.spec.parameters["required"] == ["question"]


def test_a_question_interrupts_the_run_as_a_question() -> None:
    result = asking(call("ask_human", "q", question="Which?")).run("go")
    assert (result.status, result.stop_reason) == (RunStatus.INTERRUPTED, "question")
    assert result.pending[0].arguments == {"question": "Which?"}


def test_a_question_beside_a_confirmation_is_a_confirmation() -> None:
    result = asking([call("ask_human", "q", question="Which?"), call("refund", "r", amount=1)]).run("go")
    assert result.stop_reason == "confirmation"


@pytest.mark.parametrize("answer", ["blue", "", 0, None, {"colour": "blue"}])
def test_the_answer_is_the_result_of_the_call(answer: object) -> None:
    agent = asking(call("ask_human", "q", question="Which?"), "thanks")
    context = agent.run("go").context
    result = agent.run(context=context, confirmations=[Confirmation("q", "answer", answer=answer)])
    assert result.output == "thanks"
    given = context.events[2].tool_results[0]
    assert (given.status, given.content) == ("success", answer)
    assert context.events[2].call == {"decisions": {"q": "answer"}}


def test_a_person_may_decline_to_answer() -> None:
    agent = asking(call("ask_human", "q", question="Which?"), "well then")
    context = agent.run("go").context
    agent.run(context=context, confirmations=[Confirmation("q", "reject", reason="find out yourself")])
    assert context.events[2].tool_results[0].status == "error"
    assert context.events[2].tool_results[0].content.endswith("find out yourself")


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        (Confirmation("q", "answer", answer="green"), r"must be one of \['red', 'blue'\]"),
        (Confirmation("q", "approve"), "decide 'answer' with answer="),
        (Confirmation("r", "answer", answer="x"), "decide 'approve' or 'reject'"),
    ],
)
def test_a_decision_of_the_wrong_kind_is_refused_and_nothing_is_run(
    decision: Confirmation, message: str
) -> None:
    question = call("ask_human", "q", question="Which?", choices=["red", "blue"])
    agent = asking([question, call("refund", "r", amount=1)])
    context = agent.run("go").context
    with pytest.raises(InvalidInput, match=message):
        agent.run(context=context, confirmations=[decision])
    assert len(context.events) == 2


def test_a_question_without_text_goes_back_to_the_model_and_asks_nobody() -> None:
    result = asking(call("ask_human", "q"), "never mind").run("go")
    assert result.status is RunStatus.COMPLETED
    assert "question: Field required" in result.context.events[2].tool_results[0].content


def test_a_tool_of_ones_own_may_work_with_an_answer() -> None:
    @tool
    def order(dish: str, answer: HumanAnswer) -> str:
        return f"{answer.value} x {dish}"

    agent = Agent("clerk", ScriptedLlm(call("order", "o", dish="soup"), "served"), tools=[order])
    context = agent.run("go").context
    agent.run(context=context, confirmations=[Confirmation("o", "answer", answer=2)])
    assert context.events[2].tool_results[0].content == "2 x soup"


def test_without_a_person_the_call_is_an_error_that_says_so() -> None:
    from agency.agent import ExecutionContext

    (result,) = asking().act(ExecutionContext(), [call("ask_human", question="Which?")])
    assert "this run has no HumanAnswer" in result.content

"""What is left of a budget, as a turn's limits and as a question."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agency.agent import ExecutionContext, Message
from agency.agent.events import Event, Usage
from agency.agent.history import history_of
from agency.agent.limits import Limits
from agency.agent.sums import usage_of
from agency.mission.budget import Budget

Costs = st.lists(st.floats(0.0001, 5.0), max_size=6)


def spending(cost: float = 0.0, tokens: int = 0) -> Usage:
    return Usage(model_calls=1, input_tokens=tokens, cost=cost)


def event(author: str, usage: Usage | None = None) -> Event:
    return Event(
        execution_id="e", author=author, content=[Message(role="user", content="x")], step=0, usage=usage
    )


def test_without_caps_the_agents_limits_stay_as_they_are() -> None:
    own = Limits(max_tokens=5)
    budget = Budget.of({"seconds": 9, "failed_turns": 2, "tokens": None}, spending(tokens=100))
    assert budget.within(own) is own
    assert budget.within(None) is None
    assert budget.ask(spending(tokens=1_000)) is None


def test_the_lower_of_the_agents_limit_and_what_is_left_counts() -> None:
    budget = Budget.of({"tokens": 100}, spending(tokens=30))
    assert budget.within(None) == Limits(max_tokens=70)
    assert budget.within(Limits(max_tokens=50, max_tool_calls=3)) == Limits(max_tokens=50, max_tool_calls=3)
    assert budget.within(Limits(max_tokens=90)) == Limits(max_tokens=70)
    assert Budget.of({"tokens": 20}, spending(tokens=30)).within(None) == Limits(max_tokens=0)


def test_the_answer_must_be_above_what_was_spent() -> None:
    ask = Budget.of({"tokens": 100, "cost": 1}, spending(0.25, 60)).ask(spending(0.25, 40))
    assert ask is not None
    assert "100 of its 100 tokens" in ask.message
    (item,) = ask.items
    assert item.call.arguments == {"spent": {"tokens": 100}, "limits": {"tokens": 100}}
    assert item.schema["properties"] == {
        "tokens": {"type": "integer", "exclusiveMinimum": 100, "maximum": 10**12 - 1}
    }


@given(cap=st.floats(0.0001, 20.0), before=Costs, now=Costs)
def test_a_turn_that_its_budget_has_ended_always_asks(cap: float, before: Any, now: Any) -> None:
    committed = sum((spending(cost) for cost in before), Usage())
    budget = Budget.of({"cost": cap}, committed)
    context = ExecutionContext()
    for one in [event("user"), *(event("clerk", spending(cost)) for cost in now)]:
        context.add_event(one)
    limits = budget.within(None)
    assert limits is not None
    reached = limits.reached(history_of(context)) is not None
    assert (budget.ask(usage_of(context.events)) is not None) == reached

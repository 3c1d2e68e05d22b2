"""Caps on a turn: each has its own stop reason, is exact, and is never shown as success."""

from typing import Any

import pytest

from agency.agent import Agent, AgentResult, Limits, LlmResponse, ModelUnavailable, RunStatus, Usage, tool
from agency.agent.testing import Delay, ScriptedLlm, call
from agency.errors import ConfigurationError


class Bell:
    def __init__(self) -> None:
        self.rung: list[int] = []

        @tool
        def ring(n: int = 0) -> int:
            self.rung.append(n)
            return n

        self.tool = ring


def run(limits: Limits, *answers: Any, bell: Bell | None = None, **options: Any) -> AgentResult:
    tools = [(bell or Bell()).tool]
    return Agent("clerk", ScriptedLlm(*answers, loop=True), tools=tools, limits=limits, **options).run("go")


def expensive() -> LlmResponse:
    return LlmResponse([call("ring")], Usage(input_tokens=50, output_tokens=50, cost=0.25))


@pytest.mark.parametrize(
    ("limits", "calls"),
    [
        (Limits(max_model_calls=2), 2),
        (Limits(max_tokens=250), 3),
        (Limits(max_cost=0.5), 2),
        (Limits(max_tool_calls=2), 3),
        (Limits(max_identical_calls=3), 4),
    ],
)
def test_a_reached_limit_ends_the_turn_and_is_named(limits: Limits, calls: int) -> None:
    result = run(limits, lambda request: expensive())
    (name,) = [field for field in limits.__slots__ if getattr(limits, field) is not None]
    assert (result.status, result.stop_reason, result.output) == (RunStatus.LIMIT, name, None)
    assert result.usage.model_calls == calls


def test_wall_time_is_limited() -> None:
    result = run(Limits(max_seconds=0.01), Delay(0.02, call("ring")))
    assert (result.status, result.stop_reason) == (RunStatus.LIMIT, "max_seconds")


def test_tool_calls_never_exceed_the_limit_and_the_rest_is_answered() -> None:
    bell = Bell()
    result = run(Limits(max_tool_calls=2), [call("ring", str(n), n=n) for n in range(5)], bell=bell)
    assert sorted(bell.rung) == [0, 1]
    results = result.context.events[-1].tool_results
    assert [one.status for one in results] == ["success"] * 2 + ["error"] * 3
    assert results[-1].content == "not run: the limit max_tool_calls was reached"


def test_calls_with_other_arguments_are_not_identical() -> None:
    answers = [call("ring", n=n) for n in range(5)]
    assert run(Limits(max_identical_calls=1), *answers, "done").output == "done"


def test_limits_count_per_turn() -> None:
    agent = Agent("clerk", ScriptedLlm("a", "b"), limits=Limits(max_model_calls=1))
    assert agent.run("two", agent.run("one").context).output == "b"


def test_failed_model_calls_count() -> None:
    llm = ScriptedLlm(ModelUnavailable("busy", 0.0), call("ring"), "done")
    result = Agent("clerk", llm, tools=[Bell().tool], limits=Limits(max_model_calls=2)).run("go")
    assert result.stop_reason == "max_model_calls"


@pytest.mark.parametrize("value", [-1, 1.5, "3", True, [1]])
def test_a_cap_that_is_no_count_is_refused_by_name(value: Any):
    with pytest.raises(ConfigurationError, match="max_tokens is .* a whole number"):
        Limits(max_tokens=value)


@pytest.mark.parametrize("value", [-0.5, "1", float("nan"), float("inf"), True])
def test_a_cap_on_money_is_a_number(value: Any):
    with pytest.raises(ConfigurationError, match="max_cost is "):
        Limits(max_cost=value)

"""Runs inside parallel calls share their turn's limits: together they pass none by more than one call."""

import threading
from typing import Any

import pytest

from agency.agent import Agent, AgentResult, Limits, LlmResponse, ModelUnavailable, RunScope, Usage, tool
from agency.agent.testing import Delay, ScriptedLlm, call
from agency.errors import RunCancelled

SLOW = 0.02
SCOUTS = 8


def priced(content: Any, cost: float | None = None) -> LlmResponse:
    """An answer of 100 tokens."""
    content = content if isinstance(content, list) else [content]
    return LlmResponse(content, Usage(input_tokens=90, output_tokens=10, cost=cost))


class Search:
    """A boss that sends eight scouts at once; each looks around until something stops it."""

    def __init__(self, limits: Limits | None = None, cost: float | None = None, **options: Any) -> None:
        self.looked: list[str] = []

        @tool(effect="read")
        def look() -> str:
            self.looked.append("a desk")
            return "a desk"

        self.scouts = ScriptedLlm(Delay(SLOW, priced(call("look"), cost)), loop=True)
        self.scout = Agent("scout", self.scouts, tools=[look], limits=limits, **options)
        self.cost = cost

    def run(self, limits: Limits, tool_agent: Agent | None = None, **options: Any) -> AgentResult:
        asked = [call("scout", str(n), task="look") for n in range(SCOUTS)]
        llm = ScriptedLlm(priced(asked, self.cost), "done")
        tools = [(tool_agent or self.scout).as_tool("Scouts.", name="scout")]
        return Agent("boss", llm, tools=tools, limits=limits, **options).run("go")


@pytest.mark.parametrize("cap", range(2, 12))
def test_model_calls_are_never_more_than_the_cap(cap: int) -> None:
    search = Search()
    result = search.run(Limits(max_model_calls=cap))
    assert (result.stop_reason, result.usage.model_calls) == ("max_model_calls", cap)
    assert len(search.scouts.requests) == cap - 1


@pytest.mark.parametrize(("cap", "used"), [(350, 400), (400, 400), (1_050, 1_100)])
def test_tokens_are_passed_by_one_call_at_most(cap: int, used: int) -> None:
    result = Search().run(Limits(max_tokens=cap))
    assert (result.stop_reason, result.usage.total_tokens) == ("max_tokens", used)


def test_money_is_passed_by_one_call_at_most() -> None:
    result = Search(cost=0.25).run(Limits(max_cost=1.2))
    assert (result.stop_reason, result.usage.cost) == ("max_cost", 1.25)


def test_what_a_call_has_to_read_is_held_back_where_no_call_was_as_large() -> None:
    """Every scout's first call is far larger than what the turn has seen."""
    search = Search()
    large = LlmResponse([call("look")], Usage(input_tokens=5_000, output_tokens=10))
    search.scouts.answers = [Delay(SLOW, large)]
    search.scout.instructions = ["word " * 4_000]
    result = search.run(Limits(max_tokens=6_000))
    assert (result.stop_reason, result.usage.total_tokens) == ("max_tokens", 100 + 2 * 5_010)


@pytest.mark.parametrize("cap", range(SCOUTS, SCOUTS + 6))
def test_tool_calls_are_never_more_than_the_cap(cap: int) -> None:
    search = Search()
    result = search.run(Limits(max_tool_calls=cap))
    assert result.usage.tool_calls <= cap
    assert len(search.looked) == cap - SCOUTS


def test_runs_inside_runs_are_held_to_every_limit_above_them() -> None:
    search = Search()
    asked = [call("look_out", f"i{n}", task="look") for n in range(3)]
    leader = ScriptedLlm(lambda _: priced(asked), loop=True)
    leaders = Agent("leader", leader, tools=[search.scout.as_tool("Scouts.", name="look_out")])
    result = search.run(Limits(max_model_calls=15), leaders)
    assert (result.stop_reason, result.usage.model_calls) == ("max_model_calls", 15)
    assert 1 + len(leader.requests) + len(search.scouts.requests) == 15


def test_an_agents_own_limits_hold_inside_too() -> None:
    search = Search()
    asked = [call("look_out", f"i{n}", task="look") for n in range(5)]
    leader = ScriptedLlm(lambda _: priced(asked), loop=True)
    tools = [search.scout.as_tool("Scouts.", name="look_out")]
    leaders = Agent("leader", leader, tools=tools, limits=Limits(max_model_calls=3))
    result = search.run(Limits(max_model_calls=1_000), leaders)
    assert result.output == "done"
    assert (len(leader.requests), len(search.scouts.requests)) == (SCOUTS, SCOUTS * 2)


def test_far_from_the_cap_they_run_at_the_same_time() -> None:
    meeting = threading.Barrier(SCOUTS, timeout=10)

    def met(_: Any) -> LlmResponse:
        meeting.wait()
        return priced([])

    search = Search()
    search.scouts.answers = [met] * SCOUTS + [lambda _: "found"]
    search.run(Limits(max_tokens=100_000, max_model_calls=100, max_cost=1.0))
    assert not meeting.broken


def test_a_call_that_failed_makes_room_for_the_next() -> None:
    search = Search(model_retries=0)
    search.scouts.answers = [Delay(SLOW, ModelUnavailable("busy", 0.0))]
    result = search.run(Limits(max_tokens=201), model_retries=0)
    assert (result.stop_reason, len(search.scouts.requests)) == ("model_unavailable", SCOUTS)


def test_one_that_waits_for_room_can_be_stopped() -> None:
    stopped, begun = threading.Event(), threading.Event()

    def slow(_: Any) -> LlmResponse:
        begun.set()
        stopped.wait(10)
        return priced(call("look"))

    def checkpoint() -> None:
        if begun.is_set():
            stopped.set()
            raise RunCancelled("a cancel was asked for")

    search = Search()
    search.scouts.answers = [slow]
    with pytest.raises(RunCancelled):
        search.run(Limits(max_tokens=101), scope=RunScope(checkpoint=checkpoint))
    assert len(search.scouts.requests) == 1

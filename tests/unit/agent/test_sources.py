"""Sources of tools: opened for a run, closed after it, and an honest end where one cannot be opened."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agency.agent import (
    Agent,
    Confirmation,
    ExecutionContext,
    RunStatus,
    Tool,
    ToolDefinitionError,
    ToolSource,
    ToolsUnavailable,
    tool,
)
from agency.agent.testing import ScriptedLlm, call


@tool(effect="read")
def own() -> str:
    """A tool of the agent itself."""
    return "own"


@tool(name="shelf__lend", requires_confirmation=True)
def lend(book: str) -> str:
    """Lend a book."""
    return f"{book} lent"


class Shelf:
    """A source that counts how often it was opened and closed."""

    def __init__(self, *tools: Tool, fails: bool = False) -> None:
        self.name = "shelf"
        self.tools = tools
        self.fails = fails
        self.log: list[str] = []

    @contextmanager
    def connected(self) -> Iterator[tuple[Tool, ...]]:
        if self.fails:
            raise ToolsUnavailable("the shelf is gone")
        self.log.append("opened")
        try:
            yield self.tools
        finally:
            self.log.append("closed")


def test_a_run_opens_a_source_once_and_closes_it_at_its_end() -> None:
    shelf = Shelf(lend)
    llm = ScriptedLlm(call("own"), call("own"), "done")
    agent = Agent("clerk", llm, tools=[own, shelf])

    assert isinstance(shelf, ToolSource)
    assert shelf.log == []
    assert agent.run("go").output == "done"
    assert shelf.log == ["opened", "closed"]
    assert [spec.name for spec in llm.requests[0].tools] == ["own", "shelf__lend"]
    assert [one.name for one in agent.tools] == ["own"]


def test_a_source_is_closed_when_the_run_breaks() -> None:
    shelf = Shelf(lend)
    with pytest.raises(ZeroDivisionError):
        Agent("clerk", ScriptedLlm(ZeroDivisionError()), tools=[shelf]).run("go")
    assert shelf.log == ["opened", "closed"]


def test_single_steps_can_share_one_connection() -> None:
    shelf = Shelf(lend)
    agent = Agent("clerk", ScriptedLlm(call("own"), "done", loop=True), tools=[own, shelf])
    context = agent.run("go").context
    shelf.log.clear()

    with agent.connected() as live:
        live.step(context)
        live.step(context)
        assert shelf.log == ["opened"]
    assert shelf.log == ["opened", "closed"]
    agent.step(context)
    assert shelf.log == ["opened", "closed"] * 2


def test_a_call_of_a_source_waits_for_a_person_and_goes_on_over_a_new_connection() -> None:
    shelf = Shelf(lend)
    agent = Agent("clerk", ScriptedLlm(call("shelf__lend", "c1", book="Emma"), "done"), tools=[shelf])

    paused = agent.run("go")
    assert paused.status is RunStatus.INTERRUPTED
    result = agent.run(context=paused.context, confirmations=[Confirmation("c1", "approve")])

    assert result.output == "done"
    assert paused.context.events[2].tool_results[0].content == "Emma lent"
    assert shelf.log == ["opened", "closed"] * 2


def test_a_source_that_cannot_be_opened_fails_the_run_before_anything_is_recorded() -> None:
    llm = ScriptedLlm("never asked")
    context = ExecutionContext()

    result = Agent("clerk", llm, tools=[own, Shelf(fails=True)]).run("go", context)

    assert (result.status, result.stop_reason) == (RunStatus.FAILED, "tools_unavailable")
    assert result.error is not None and result.error.message == "the shelf is gone"
    assert context.events == []
    assert llm.requests == []


def test_the_first_source_is_closed_when_the_second_cannot_be_opened() -> None:
    shelf = Shelf(lend)
    Agent("clerk", ScriptedLlm("never asked"), tools=[shelf, Shelf(fails=True)]).run("go")
    assert shelf.log == ["opened", "closed"]


def test_two_tools_of_one_name_are_refused_whatever_their_source() -> None:
    agent = Agent("clerk", ScriptedLlm("never asked"), tools=[Shelf(lend), Shelf(lend)])
    with pytest.raises(ToolDefinitionError, match="shelf__lend"):
        agent.run("go")

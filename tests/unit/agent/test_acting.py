"""Running tool calls: arguments, errors, injection, order, concurrency, timeouts, retries, hooks."""

import asyncio
import contextvars
import json
import threading
import time
from typing import Any

import pytest

from agency.agent import (
    Agent,
    ExecutionContext,
    Hooks,
    Injected,
    RunCancelled,
    RunParked,
    RunReleased,
    RunScope,
    ToolCall,
    ToolCallInfo,
    ToolResult,
    background,
    tool,
)
from agency.agent.testing import ScriptedLlm, call
from tests.unit.agent.doubles import MemoryJournal


def act(calls: ToolCall | list[ToolCall], *tools: Any, **options: Any) -> list[ToolResult]:
    agent = Agent("clerk", ScriptedLlm(), tools=tools, **options)
    return agent.act(ExecutionContext(), calls if isinstance(calls, list) else [calls])


def one(calls: ToolCall, *tools: Any, **options: Any) -> tuple[str, Any]:
    (result,) = act(calls, *tools, **options)
    return result.status, result.content


@tool
def divide(a: float, b: float) -> float:
    """Divide a by b."""
    return a / b


def test_an_unknown_tool_is_an_error_result_that_lists_the_known_ones() -> None:
    assert one(call("multiply"), divide) == (
        "error",
        "There is no tool 'multiply'. The tools are: divide.",
    )


def test_wrong_arguments_are_an_error_result_that_names_the_fields() -> None:
    status, content = one(call("divide", a="x", c=1), divide)
    assert status == "error"
    assert content.startswith("Invalid arguments for divide: a: Input should be a valid number")
    assert "(got 'x')" in content
    assert "b: Field required" in content
    assert "c: Extra inputs are not permitted" in content


def test_a_failed_tool_is_an_error_result_that_names_the_exception() -> None:
    @tool
    def fail() -> None:
        raise LookupError("no such row")

    assert one(call("fail"), fail) == ("error", "LookupError: no such row")


def test_a_tool_that_exits_is_an_error_result() -> None:
    @tool
    def leave() -> None:
        raise SystemExit(3)

    assert one(call("leave"), leave) == ("error", "SystemExit: 3")


def test_a_call_with_broken_arguments_is_not_run() -> None:
    ran: list[int] = []

    @tool
    def mark() -> None:
        ran.append(1)

    broken = ToolCall(tool_call_id="1", name="mark", invalid='{"a": ')
    status, content = one(broken, mark)
    assert status == "error"
    assert content.endswith('{"a": ')
    assert not ran


@pytest.mark.parametrize("text", ["[1]", "null", '{"a": ' + "1" * 1_000_000])
def test_broken_arguments_of_any_size_give_a_short_error(text: str) -> None:
    _, content = one(ToolCall(tool_call_id="1", name="divide", invalid=text), divide)
    assert len(content) < 1_000


class Desk(Injected):
    """Something that only a runtime has."""


def test_parameters_are_injected_by_annotation() -> None:
    desk = Desk()

    @tool
    def look(at: str, context: ExecutionContext, info: ToolCallInfo, place: Desk) -> list[Any]:
        return [at, context.current_step, info.tool_call_id, info.cancelled, place is desk]

    result = one(call("look", "c1", at="it"), look, scope=RunScope(resources={Desk: desk}))
    assert result == ("success", ["it", 0, "c1", False, True])


def test_a_resource_of_a_subclass_is_injected() -> None:
    class Corner(Desk):
        pass

    @tool
    def look(place: Desk) -> str:
        return type(place).__name__

    assert one(call("look"), look, scope=RunScope(resources={Corner: Corner()})) == ("success", "Corner")


def test_a_missing_resource_is_an_error_result_that_names_it() -> None:
    @tool
    def look(place: Desk) -> None: ...

    status, content = one(call("look"), look)
    assert status == "error"
    assert "this run has no Desk for the parameter `place`" in content


def test_an_optional_resource_may_be_missing() -> None:
    @tool
    def look(place: Desk | None = None) -> bool:
        return place is None

    assert one(call("look"), look) == ("success", True)


def test_a_tool_can_tell_that_it_was_cancelled() -> None:
    @tool
    def ask(info: ToolCallInfo) -> bool:
        return info.cancelled

    assert one(call("ask"), ask, scope=RunScope(is_cancelled=lambda: True)) == ("success", True)


def test_several_calls_run_at_the_same_time_and_keep_their_order() -> None:
    barrier = threading.Barrier(3, timeout=60)

    @tool
    def meet(n: int) -> int:
        barrier.wait()
        return n

    results = act([call("meet", str(n), n=n) for n in range(3)], meet)
    assert [result.content for result in results] == [0, 1, 2]


def test_a_tool_that_is_not_parallel_makes_the_calls_run_one_after_the_other() -> None:
    active: list[int] = []
    most = 0

    def work(n: int) -> int:
        nonlocal most
        active.append(n)
        most = max(most, len(active))
        time.sleep(0.01)
        active.pop()
        return n

    alone = tool(name="alone", parallel=False)(work)
    other = tool(name="other")(work)
    act([call("other", "1", n=1), call("alone", "2", n=2), call("other", "3", n=3)], alone, other)
    assert most == 1


def test_a_single_call_without_timeout_runs_on_the_callers_thread() -> None:
    @tool
    def where() -> int:
        return threading.get_ident()

    assert one(call("where"), where) == ("success", threading.get_ident())


def test_more_calls_than_threads_are_all_run() -> None:
    @tool
    def echo(n: int) -> int:
        return n

    results = act([call("echo", str(n), n=n) for n in range(40)], echo)
    assert [result.content for result in results] == list(range(40))


def test_threads_see_the_callers_context_variables() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("seen")

    @tool
    def read() -> str:
        return variable.get()

    results = act([call("read", "1"), call("read", "2")], read)
    assert [result.content for result in results] == ["seen", "seen"]


def test_a_tool_that_never_returns_is_given_up_after_its_timeout_and_told() -> None:
    released, told = threading.Event(), threading.Event()

    @tool(timeout=0.05)
    def hang(info: ToolCallInfo) -> None:
        released.wait(30)
        if info.cancelled:
            told.set()

    assert one(call("hang"), hang) == ("error", "hang gave no result within 0.05 seconds")
    released.set()
    assert told.wait(60)


def test_a_timeout_does_not_spoil_the_other_calls() -> None:
    release = threading.Event()

    @tool(timeout=0.05)
    def hang() -> None:
        release.wait(60)

    results = act([call("hang"), call("divide", a=1, b=2)], hang, divide)
    release.set()
    assert [result.status for result in results] == ["error", "success"]


def test_an_async_tool_is_awaited() -> None:
    @tool
    async def later(n: int) -> int:
        await asyncio.sleep(0)
        return n + 1

    assert one(call("later", n=1), later) == ("success", 2)


def test_a_function_that_returns_a_coroutine_is_awaited_too() -> None:
    async def later() -> str:
        return "here"

    assert one(call("later"), tool(name="later")(lambda: later())) == ("success", "here")


def test_an_async_tool_that_hangs_is_cancelled_at_its_timeout() -> None:
    cancelled = threading.Event()

    @tool(timeout=0.05)
    async def hang() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    status, content = one(call("hang"), hang)
    assert status == "error"
    assert "0.05 seconds" in content
    assert cancelled.wait(60)


def test_an_exception_is_retried_as_often_as_the_tool_says() -> None:
    tries: list[int] = []

    @tool(effect="read", retries=2)
    def flaky() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("no line")
        return "through"

    assert one(call("flaky"), flaky) == ("success", "through")
    assert len(tries) == 3


def test_retries_end_with_the_last_error() -> None:
    @tool(effect="idempotent", retries=1)
    def broken() -> None:
        raise ConnectionError("no line")

    assert one(call("broken"), broken) == ("error", "ConnectionError: no line")


class Unwritable:
    def __repr__(self) -> str:
        return "<unwritable>"


def circle() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


@pytest.mark.parametrize(
    ("value", "content"),
    [
        (None, None),
        (0, 0),
        ("", ""),
        (False, False),
        ([], []),
        ({1: {"a"}}, {"1": ["a"]}),
        (float("nan"), "NaN"),
        (b"text", "text"),
        (b"\xff", "_w=="),
        (Unwritable(), "<unwritable>"),
        ("a\x00\ud800", "a\ufffd"),
    ],
)
def test_results_of_any_type_become_json(value: Any, content: Any) -> None:
    @tool
    def give() -> Any:
        return value

    status, result = one(call("give"), give)
    assert (status, result) == ("success", content)
    json.dumps(result, allow_nan=False).encode()


def test_a_result_that_refers_to_itself_is_an_error_result() -> None:
    assert one(call("circle"), tool(circle))[0] == "error"


def test_a_huge_result_is_cut_with_a_visible_note() -> None:
    @tool
    def dump() -> str:
        return "x" * 50_000_000

    status, content = one(call("dump"), dump)
    assert status == "success"
    assert len(content) < 101_000
    assert content.endswith("[cut here: 50,000,000 characters in all, the first 100,000 are shown]")


def test_a_huge_structure_is_cut_as_json_text() -> None:
    @tool
    def dump() -> list[int]:
        return list(range(100_000))

    _, content = one(call("dump"), dump)
    assert content.startswith("[0,1,2,")
    assert "[cut here:" in content


def test_a_signal_from_a_tool_passes_through_after_its_siblings_were_recorded() -> None:
    journal = MemoryJournal()

    @tool
    def park() -> None:
        raise RunParked("ask a person")

    with pytest.raises(RunParked):
        act([call("park"), call("divide", a=1, b=2)], park, divide, scope=RunScope(journal=journal))
    assert [key.split(":")[3] for kind, key in journal.log if kind == "record"] == ["divide"]


def test_a_cancel_does_not_wait_for_tools_that_hang() -> None:
    started, release = threading.Event(), threading.Event()

    @tool
    def hang() -> None:
        started.set()
        release.wait(30)

    def checkpoint() -> None:
        if started.is_set():
            raise RunCancelled("stop")

    with pytest.raises(RunCancelled):
        act([call("hang", "1"), call("hang", "2")], hang, scope=RunScope(checkpoint=checkpoint))
    assert not release.is_set()
    release.set()


def test_a_release_waits_for_the_tools_that_were_started_and_starts_no_other() -> None:
    journal = MemoryJournal()
    asked, started = threading.Event(), threading.Barrier(16, timeout=60)
    begun: list[int] = []

    @tool
    def work(n: int) -> int:
        begun.append(n)
        started.wait()
        asked.wait(60)
        return n

    def checkpoint() -> None:
        if len(begun) == 16:
            asked.set()
            raise RunReleased("shutting down")

    scope = RunScope(journal=journal, checkpoint=checkpoint)
    with pytest.raises(RunReleased):
        act([call("work", str(n), n=n) for n in range(20)], work, scope=scope)
    assert sum(kind == "record" for kind, _ in journal.log) == 16


def test_before_tool_may_answer_instead_of_the_tool() -> None:
    hooks = Hooks(before_tool=lambda context, call: "cached" if call.name == "divide" else None)
    assert one(call("divide", a=1, b=0), divide, hooks=hooks) == ("success", "cached")


def test_after_tool_may_replace_the_result() -> None:
    def mask(context: ExecutionContext, call: ToolCall, result: ToolResult) -> ToolResult:
        return result.model_copy(update={"content": "***"})

    assert one(call("divide", a=1, b=2), divide, hooks=Hooks(after_tool=mask)) == ("success", "***")


@pytest.mark.parametrize("at_once", [1, 2])
def test_what_a_tool_asks_of_a_model_or_server_stops_with_the_run(at_once: int):
    """A tool's own requests run on the background loop, which asks the run around them whether to stop."""
    cancelled = threading.Event()

    @tool(effect="read")
    def ask() -> str:
        cancelled.set()
        background.run(asyncio.sleep(60))
        return "never"

    scope = RunScope(is_cancelled=cancelled.is_set)
    calls = [call("ask", str(n)) for n in range(at_once)]
    agent = Agent("clerk", ScriptedLlm(calls), tools=[ask], scope=scope)
    with pytest.raises(RunCancelled):
        agent.run("go")

"""Agents with the tools of real MCP servers: a process over stdin and stdout, a service over HTTP."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agency.agent import Agent, ExecutionContext, LlmRequest, McpServer, RunScope, RunStatus, ToolResult
from agency.agent.testing import ScriptedLlm, call
from agency.errors import RunCancelled
from tests.unit.agent.doubles import MemoryJournal

SILENT = "input(); input()"
SERVER = [sys.executable, str(Path(__file__).with_name("server.py"))]
PATIENT = 240.0
"""Seconds for a Python with its libraries to start on a busy machine."""
STDIO = McpServer(name="test", command=SERVER, env={"TEST_SECRET": "given"}, connect_timeout=PATIENT)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([*SERVER, "--http"], **pipes, text=True) as serving:
        assert serving.stdin is not None and serving.stdout is not None
        yield serving.stdout.readline().strip()
        serving.stdin.close()


def run(server: McpServer, *answers: Any, **options: Any) -> list[ToolResult]:
    """The results of the calls of one run."""
    result = Agent("clerk", ScriptedLlm(*answers, "done"), tools=[server], **options).run("go")
    assert result.output == "done"
    return [one for event in result.context.events for one in event.tool_results]


def wait_until(true: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + 60
    while not true():
        assert time.monotonic() < until, f"{what} did not happen within 60 s"
        time.sleep(0.02)


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_run_has_one_process_of_its_own_which_ends_with_it() -> None:
    llm = ScriptedLlm(
        [call("test__process", "1"), call("test__add", "2", a=1, b=2)], call("test__process"), "done"
    )
    agent = Agent("clerk", llm, tools=[STDIO])

    events = agent.run("go").context.events
    first, added, third = [one for event in events for one in event.tool_results]

    assert added.content == 3
    assert (first.content["pid"], third.content["calls"]) == (third.content["pid"], 3)
    assert first.content["secret"] == "given"
    assert not runs(first.content["pid"])
    (other,) = run(STDIO, call("test__process"))
    assert other.content["calls"] == 1
    specs = {spec.name: spec for spec in llm.requests[0].tools}
    assert specs["test__add"].description == "Add two numbers."
    assert specs["test__add"].parameters["properties"]["b"]["description"] == "the second number"


def test_a_server_over_http_keeps_running_between_runs(url: str) -> None:
    server = McpServer(name="test", url=url, headers={"Authorization": "Bearer x"}, connect_timeout=PATIENT)
    first, weather = run(server, call("test__process"), call("test__weather", city="Bonn"))
    (second,) = run(server, call("test__process"))
    assert weather.content == {"city": "Bonn", "degrees": 21.5}
    assert first.content["pid"] == second.content["pid"]
    assert second.content["calls"] > first.content["calls"]


def test_a_run_that_is_picked_up_repeats_no_recorded_call_and_sends_the_same_key(url: str) -> None:
    server = McpServer(name="test", url=url, connect_timeout=PATIENT)
    journal = MemoryJournal("exec:1")

    def answer(request: LlmRequest) -> Any:
        done = sum(isinstance(item, ToolResult) for item in request.contents)
        return [call("test__process", "1"), call("test__key", "2"), "done"][done]

    def results() -> list[Any]:
        llm = ScriptedLlm(answer, loop=True)
        agent = Agent("clerk", llm, tools=[server], scope=RunScope(journal=journal))
        events = agent.run("go", ExecutionContext("exec")).context.events
        return [one.content for event in events for one in event.tool_results]

    first = results()
    assert first[1] in {key for _, key in journal.intents.values()}
    assert results() == first
    # As if the process had died after the second call was announced and before its result was there.
    journal.forget_after(max(at for at, key in enumerate(journal.entries) if key.endswith(":results")))
    assert len(journal.intents) == 2
    assert results() == first


def test_what_goes_wrong_is_an_error_result() -> None:
    fail, wrong, dotted, picture = run(
        STDIO,
        [
            call("test__fail", "1", reason="no such file"),
            call("test__add", "2", a="one", b=200),
            call("test__dotted_name_with_slash", "3"),
            call("test__picture", "4"),
        ],
    )
    assert (fail.status, fail.content) == ("error", "McpToolError: Error executing tool fail: no such file")
    assert wrong.status == "error"
    assert "a: 'one' is not of type 'integer'" in wrong.content
    assert "b: 200 is greater than the maximum of 100" in wrong.content
    assert dotted.content == "dotted"
    assert picture.content == "a square\n[image image/png, 3 bytes, not shown]"


def test_an_older_server_is_understood_with_all_its_pages_and_whatever_else_it_prints() -> None:
    command = [sys.executable, str(Path(SERVER[1]).with_name("old_server.py"))]
    old = McpServer(name="old", command=command, connect_timeout=PATIENT)
    first, last = run(old, [call("old__tool_0", "1"), call("old__tool_4", "2")])
    assert (first.content, last.content) == ("tool_0 was called", "tool_4 was called")


def test_a_server_that_dies_in_a_call_is_an_error_and_so_is_each_later_call() -> None:
    died, later = run(STDIO, call("test__vanish"), call("test__add", a=1, b=2))
    assert died.status == later.status == "error"
    assert "the MCP server 'test' did not answer" in died.content


def test_a_call_that_takes_too_long_is_an_error_and_the_server_goes_on() -> None:
    server = McpServer(name="test", command=SERVER, timeout=3.0, connect_timeout=PATIENT)
    slow, added = run(server, call("test__sleep", seconds=60), call("test__add", a=1, b=2))
    assert slow.status == "error"
    assert "3 seconds" in slow.content
    assert added.content == 3


def test_a_cancelled_run_leaves_no_process_behind() -> None:
    context = ExecutionContext()

    def started() -> list[Any]:
        return [one.content["pid"] for event in context.events for one in event.tool_results]

    agent = Agent(
        "clerk",
        ScriptedLlm(call("test__process"), call("test__sleep", seconds=60)),
        tools=[STDIO],
        scope=RunScope(is_cancelled=lambda: bool(started())),
    )
    with pytest.raises(RunCancelled):
        agent.run("go", context)
    wait_until(lambda: not runs(started()[0]), "the end of the server")


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ({"command": ["no-such-program"]}, "no-such-program"),
        (
            {"command": [sys.executable, "-c", "raise SystemExit('no licence')"], "connect_timeout": PATIENT},
            "no licence",
        ),
        ({"url": "http://127.0.0.1:9/mcp"}, "connection attempts failed"),
        (
            {"command": [sys.executable, "-c", SILENT], "connect_timeout": 0.5},
            "within 0.5 seconds",
        ),
    ],
    ids=["no-program", "ends-at-once", "no-service", "silent"],
)
def test_a_server_that_cannot_be_reached_fails_the_run_with_the_reason(where: Any, reason: str) -> None:
    result = Agent("clerk", ScriptedLlm(), tools=[McpServer(name="test", **where)]).run("go")
    assert (result.status, result.stop_reason) == (RunStatus.FAILED, "tools_unavailable")
    assert result.error is not None
    assert result.error.message.startswith("the MCP server 'test' cannot be used")
    assert reason in result.error.message


def test_an_agent_declared_with_a_server_is_built_without_starting_it() -> None:
    agent = Agent("clerk", ScriptedLlm(), tools=[McpServer(name="test", command=["no-such-program"])])
    assert [source.name for source in agent.sources] == ["test"]

"""Programs of a tool do not outlive whoever waits for them."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agency.agent import run_process, tool
from agency.agent.injection import ToolCallInfo
from agency.agent.testing import ScriptedLlm, call
from agency.errors import RunCancelled
from tests.faults.processes import eventually

NOBODY = ToolCallInfo("c1", "key")
SOON = 20.0
"""Seconds, also on a busy machine; what is ended would take a minute by itself."""
FAMILY = "sleep 60 & echo $! > {file}; sleep 60"


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def grandchild(file: Path) -> Callable[[], int]:
    return lambda: int(file.read_text() or 0) if file.exists() else 0


def test_it_gives_what_the_program_wrote_and_how_it_ended() -> None:
    done = run_process(["sh", "-c", "cat; echo bad >&2; exit 3"], NOBODY, input="good")
    assert (done.status, done.output, done.errors) == (3, "good", "bad\n")


def test_long_input_and_output_do_not_block_each_other() -> None:
    text = "x" * 1_000_000
    assert run_process(["cat"], NOBODY, input=text).output == text


def test_a_cancel_ends_the_program_and_what_it_started(tmp_path: Path) -> None:
    file, cancelled = tmp_path / "pid", threading.Event()
    info = ToolCallInfo("c1", "key", is_cancelled=cancelled.is_set)
    raised: list[BaseException] = []

    def work() -> None:
        try:
            run_process(["sh", "-c", FAMILY.format(file=file)], info)
        except RunCancelled as exc:
            raised.append(exc)

    thread = threading.Thread(target=work)
    thread.start()
    pid = eventually(grandchild(file))
    began = time.monotonic()
    cancelled.set()
    thread.join(60)
    assert time.monotonic() - began < SOON
    assert len(raised) == 1
    eventually(lambda: not alive(pid))


def test_what_listens_to_no_polite_signal_is_killed() -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        run_process(["sh", "-c", "trap '' TERM; while true; do sleep 0.1; done"], NOBODY, timeout=0.2)
    assert time.monotonic() - began < SOON


def test_what_the_program_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    run_process(["sh", "-c", f"sleep 60 >&- 2>&- & echo $! > {file}"], NOBODY)
    pid = grandchild(file)()
    eventually(lambda: not alive(pid))


def test_the_timeout_of_its_tool_counts() -> None:
    @tool(timeout=0.3)
    def nap(info: ToolCallInfo) -> str:
        """Sleep for long."""
        return run_process(["sleep", "60"], info).output

    from agency.agent import Agent

    began = time.monotonic()
    llm = ScriptedLlm(call("nap"), "so be it")
    assert Agent("a", llm, tools=[nap]).run("sleep").output == "so be it"
    assert time.monotonic() - began < SOON


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel does this on Linux alone")
def test_a_worker_that_is_killed_takes_the_program_along(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    code = (
        "from agency.agent import run_process; from agency.agent.injection import ToolCallInfo; "
        f"run_process(['sh', '-c', 'echo $$ > {file}; exec sleep 60'], ToolCallInfo('c', 'k'))"
    )
    worker = subprocess.Popen([sys.executable, "-c", code], env=os.environ)
    pid = eventually(grandchild(file))
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    eventually(lambda: not alive(pid))

"""Programs that a tool starts: ended, with all that they started, when nobody waits for them any more.

A cancel, a timeout and the end of this process reach them. Knows nothing of what they do.
"""

import atexit
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agency.agent.injection import ToolCallInfo
from agency.errors import RunCancelled

LOOK_SECONDS = 0.1
GRACE_SECONDS = 0.5
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None
_running: set[int] = set()
_guard = threading.Lock()


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a program ended (`status` is negative for a signal) and what it wrote."""

    status: int
    output: str
    errors: str


def run_process(
    command: Sequence[str],
    info: ToolCallInfo,
    *,
    input: str | None = None,
    timeout: float | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
) -> ProcessResult:
    """Run a program for a tool and wait for its end. It gets no shell and, without `env`, this environment.

    It runs in a process group of its own, which is ended as a whole: SIGTERM, then SIGKILL half a second
    later. `RunCancelled` when the run was cancelled or its worker stops; `TimeoutError` after `timeout`
    seconds or at the tool's deadline.
    """
    limit = None if timeout is None else time.monotonic() + timeout
    ends = min((one for one in (limit, info.deadline) if one is not None), default=None)
    process = subprocess.Popen(
        list(command),
        stdin=subprocess.PIPE if input is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=env,
        cwd=cwd,
        start_new_session=True,
        preexec_fn=None if _libc is None else _die_with_parent,
    )
    with _guard:
        _running.add(process.pid)
    try:
        output, errors = _wait(process, info, ends, input)
    finally:
        _end(process)
        with _guard:
            _running.discard(process.pid)
    return ProcessResult(process.returncode, output, errors)


def end_processes() -> None:
    """Kill what still runs: for a process that ends without waiting for its tools."""
    with _guard:
        for group in _running:
            _signal(group, signal.SIGKILL)


def _wait(
    process: "subprocess.Popen[str]", info: ToolCallInfo, ends: float | None, input: str | None
) -> tuple[str, str]:
    while True:
        try:
            return process.communicate(input, timeout=LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            input = None
        if info.is_cancelled():
            raise RunCancelled(f"cancelled while {process.args!r} ran")
        if ends is not None and time.monotonic() >= ends:
            raise TimeoutError("the program did not end in time and was stopped")


def _end(process: "subprocess.Popen[str]") -> None:
    """End the whole group, also what the program left behind."""
    if process.poll() is None:
        _signal(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
    _signal(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _die_with_parent() -> None:
    """In the child, before its program: the kernel kills it when this process dies without a word."""
    assert _libc is not None
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


atexit.register(end_processes)

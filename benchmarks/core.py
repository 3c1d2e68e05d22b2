"""What only the core has: cost of a request late in a run, memory, imports, stable prefixes, the trace.

Run as a module it prints its figures as JSON, from a process that has measured nothing else.
"""

import gc
import io
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from agency.agent import Agent, ExecutionContext, LlmRequest, LlmResponse, display_trace
from agency.agent.prompt import EverythingBuilder, RequestBuilder, TrimmingBuilder
from benchmarks.script import TASK, Script, check
from benchmarks.subjects import agency_sync

LONG = 1000
TIMED = "import time; t = time.process_time(); {0}; print(time.process_time() - t)"
FIRST_RUN = "from benchmarks.subjects import agency_sync; agency_sync.steps(1)"


def main() -> None:
    agency_sync.steps(10)
    figures = {
        "memory": memory(),
        "request": request_growth(),
        "prefix": stable_prefixes(TrimmingBuilder()),
        "trace": trace_seconds(),
        "import": fresh_seconds("import agency.agent"),
        "first run": fresh_seconds(FIRST_RUN),
        "import pydantic": fresh_seconds("import pydantic.main"),
    }
    print(json.dumps(figures))


def memory() -> float:
    """MB that the process grows by over a long run, beyond the bytes of its content."""
    gc.collect()
    before = _resident()
    context = ExecutionContext()
    agency_sync.steps(LONG, context)
    gc.collect()
    grown = _resident() - before
    content = sum(len(event.model_dump_json()) for event in context.events)
    return (grown - content) / 1e6


def request_growth() -> float:
    """How many times the cost at step 10 a request costs at step 1,000, but for copying the list of items."""
    early, late = _at_step(10), _at_step(LONG)
    best = [float("inf")] * 4
    for _ in range(60):  # in turn, so that a busy moment hits all of them
        best = [min(known, _seconds(work)) for known, work in zip(best, [*early, *late], strict=True)]
    return (best[2] - best[3]) / (best[0] - best[1])


def _at_step(count: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """What builds the next request of a run, and what copies its items."""
    context = ExecutionContext()
    agency_sync.steps(count, context)
    builder = EverythingBuilder()
    items = builder.build(context, LlmRequest()).contents
    return lambda: builder.build(context, LlmRequest()), lambda: list(items)


def _seconds(work: Callable[[], object]) -> float:
    started = time.thread_time()
    for _ in range(100):
        work()
    return (time.thread_time() - started) / 100


class Watcher(agency_sync.Client):
    """Notes how often a request begins with the whole request before it."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.last: list[object] = []
        self.stable = 0

    def generate(self, request: LlmRequest) -> LlmResponse:
        self.stable += request.contents[: len(self.last)] == self.last
        self.last = list(request.contents)
        return super().generate(request)


def stable_prefixes(builder: RequestBuilder) -> float:
    """Percent of the calls of a run of 300 steps whose request only adds to the one before."""
    script = Script(300)
    client = Watcher(script)
    agent = Agent("adder", client, tools=[with_text], max_steps=script.steps + 1, request_builder=builder)
    check(agent.run(TASK).output)
    return 100 * (client.stable - 1) / (len(script.stamps) - 1)


@agency_sync.tool(name="add", effect="read")
def with_text(a: int, b: int) -> str:
    """Add two numbers and say much about it."""
    return f"{a + b} " + "and so on " * 100


def trace_seconds() -> float:
    """CPU seconds for the trace of at least 1,000 events."""
    context = ExecutionContext()
    agency_sync.steps(500, context)
    return _median(lambda: display_trace(context, file=io.StringIO()))


def fresh_seconds(statement: str) -> float:
    """CPU seconds of a statement in a fresh interpreter, the median of a few."""
    command = [sys.executable, "-c", TIMED.format(statement)]
    # Compiling each module anew would be measured else, which nobody's program does twice.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return statistics.median(float(subprocess.check_output(command, env=env)) for _ in range(7))


def _median(work: Callable[[], object]) -> float:
    taken: list[float] = []
    for _ in range(5):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return statistics.median(taken)


def _resident() -> int:
    """Bytes of memory that the process holds, without what it shares with its files."""
    for line in Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) * 1024
    raise LookupError("the kernel does not say how much memory the process holds")


if __name__ == "__main__":
    main()

"""The worker's Celery app: the ready project's, with bodies of no cost, and a no-op task as the floor."""

import itertools
import json
import os
import time
from typing import Any

from agency.config.celery import app
from benchmarks.queue import HOPS

LOG = "AGENCY_BENCH_LOG"
NOOP = "benchmarks.noop"


def note(kind: str, chain: str, n: int, began: float) -> None:
    """A line for the measuring process: when hop `n` of a chain began, and when it was over."""
    line = f"{kind} {chain} {n} {began} {time.time()}\n"
    descriptor = os.open(os.environ[LOG], os.O_WRONLY | os.O_APPEND)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


@app.task(name=NOOP, ignore_result=True, acks_late=False)
def noop(chain: str, n: int) -> None:
    """What a chain of plain Celery tasks costs that does nothing but send the next one."""
    began = time.time()
    if n < HOPS:
        app.send_task(NOOP, (chain, n + 1), ignore_result=True)
    note("noop", chain, n, began)


def hop(claim: Any) -> Any:
    """In place of a run: commit the iteration and be due again, or end."""
    began = time.time()
    from agency.enums import Verdict
    from agency.execution import store
    from agency.execution.conversation import ClosedAttempt
    from agency.execution.failure import ExecutionResult
    from agency.runtime.beat import beat
    from agency.runtime.body import Outcome

    n = claim.iteration
    with beat().watching(claim):
        if n >= HOPS:
            store.finish(claim, ExecutionResult(True, {}), ClosedAttempt(n, Verdict.PASSED, "done"))
        else:
            store.hand_on(claim, ClosedAttempt(n, Verdict.CONTINUE, "go on", feedback="go on"))
    note("hop", claim.execution_id, n, began)
    return Outcome.RELEASED


def iterate(claim: Any) -> Any:
    """A mission's iteration as it is, but for its models, which cost nothing."""
    from agency.runtime.body import run_claimed

    began, n = time.time(), claim.iteration
    outcome = run_claimed(claim)
    note("mission", claim.execution_id, n, began)
    return outcome


class Models:
    """Answers at once: the agent with a part of the work, the supervisor that another one is to come."""

    model_name = "bench:none"

    def generate(self, request: Any) -> Any:
        from agency.agent import LlmResponse, Message

        part = next(_parts)
        text = f"Part {part} is done."
        if request.output_schema is not None:
            said = {"status": "continue", "reason": "There is more.", "summary": text}
            text = json.dumps({**said, "next_input": f"Do part {part} of the work."})
        return LlmResponse([Message(role="assistant", content=text)])


_parts = itertools.count()


@app.on_after_finalize.connect
def _replace_the_body(**_: Any) -> None:
    from agency.agent import BaseAgent
    from agency.execution import registry
    from agency.runtime import poll, slots, wiring

    class Worker(BaseAgent):
        AGENT_KEY = "bench"
        NAME = "Bench"
        SYSTEM_PROMPT = "Work."
        DEFAULT_MODEL = "bench:none"

    registry.register(Worker)
    wiring._clients.append(Models())
    slots.run_claimed = poll.run_claimed = lambda claim: (iterate if claim.is_mission else hop)(claim)

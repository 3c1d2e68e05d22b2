"""Processes that die at a fail point, at the price of a fork: one process loads Django and forks for each.

`python -m tests.faults.points.mortals` reads jobs from standard input, one JSON object a line, and
writes each child's exit status to standard output.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from tests.faults.app.agents import BILL
from tests.faults.points.points import strike
from tests.faults.processes import Processes


class Mortals:
    """The forking process, as a test sees it."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._process = processes.start(
            "-m", "tests.faults.points.mortals", stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def do(self, job: str, point: str, nth: int = 1, **values: Any) -> int:
        """Have a child do a job with a fail point armed; returns its exit status (`DEAD` if it struck)."""
        order = {"job": job, "point": point, "nth": nth, "bill": os.environ[BILL], "values": values}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, self._processes.log()
        return int(answer)


def _run(execution: str) -> None:
    from agency.runtime.slots import run_woken

    run_woken(execution, 1)


def _drain(execution: str) -> None:
    """A worker that is asked to end right after its claim."""
    from agency.runtime.beat import beat
    from agency.runtime.body import run_claimed
    from agency.runtime.claim import claim

    claimed = claim(execution)
    assert claimed is not None
    beat().drain(0)
    run_claimed(claimed)


def _submit(agent: str, task: str) -> None:
    from agency.execution import service
    from agency.models import ConfiguredAgent

    service.submit(
        "fault-errand", ConfiguredAgent.objects.get(pk=agent), {"task": task}, idempotency_key="once"
    )


def _dispatch() -> None:
    from agency.runtime import queue
    from agency.runtime.dispatcher import mark_due

    for woken in mark_due():
        queue.wake(*woken)


def _sweep() -> None:
    from django.conf import settings

    from agency.runtime import sweep

    settings.AGENCY = {"BEAT_SECONDS": 0.01}
    sweep.recover()


def _schedule() -> None:
    from agency.mission import slots

    slots.run_due()


def _cancel(execution: str) -> None:
    from agency.execution import service
    from agency.models import Execution

    service.request_cancel(Execution.objects.get(pk=execution))


def _answer(request: str) -> None:
    from agency.enums import HumanDecision
    from agency.execution import answering
    from agency.human.answers import ItemAnswer
    from agency.models import HumanRequest

    asked = HumanRequest.objects.select_related("execution__owner").get(pk=request)
    given = [ItemAnswer(item.call_id, item.digest, HumanDecision.APPROVE) for item in asked.items.all()]
    answering.answer(asked.pk, given, asked.execution.owner)


JOBS: dict[str, Callable[..., None]] = {
    "run": _run,
    "drain": _drain,
    "submit": _submit,
    "dispatch": _dispatch,
    "sweep": _sweep,
    "schedule": _schedule,
    "cancel": _cancel,
    "answer": _answer,
}


def _live(order: dict[str, Any]) -> None:
    os.environ[BILL] = order["bill"]
    strike(order["point"], order["nth"])
    JOBS[order["job"]](**order["values"])


def main() -> None:
    import django

    django.setup()
    import agency.runtime.dispatcher
    import agency.runtime.poll  # noqa: F401

    for line in sys.stdin.buffer:
        if not (child := os.fork()):
            status = 1
            try:
                _live(json.loads(line))
                status = 0
            finally:
                sys.stderr.flush()
                os._exit(status)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

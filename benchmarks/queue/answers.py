"""People's answers: how long until a mission that waited for one is being run again."""

import time
from pathlib import Path

from django.db import transaction

from agency.enums import ExecutionStatus, HumanDecision, LoopStatus
from agency.execution import answering
from agency.human import requests
from agency.human.answers import ItemAnswer
from agency.human.asking import about_input
from agency.models import Execution, HumanRequest, Mission
from benchmarks.queue import processes, rows
from benchmarks.queue.hops import PATIENCE, percentile

ANSWERS = 200


def measure(home: Path, log: processes.Log) -> dict[str, float]:
    """Seconds from a person's answer to the start of the claim that goes on with it, one after another."""
    mission = rows.mission(rows.agent("owner-0"), iterations=1)
    with processes.worker(home / "answers.log"):
        _answered(log, [_waiting(mission) for _ in range(10)])
        gaps = _answered(log, [_waiting(mission) for _ in range(ANSWERS)])
    return {"answer p50": percentile(gaps, 50), "answer p95": percentile(gaps, 95)}


def _answered(log: processes.Log, asked: list[HumanRequest]) -> list[float]:
    before, said = len(log.lines("mission")), dict[str, float]()
    for request in asked:
        item = request.items.get()
        said[str(request.execution_id)] = time.time()
        given = ItemAnswer(item.call_id, item.digest, HumanDecision.ANSWER, answer="All.")
        assert answering.answer(request.pk, [given], request.execution.owner).refused is None
    lines = log.await_lines("mission", before + len(asked), PATIENCE)[before:]
    return [began - said[execution] for execution, _, began, _ in lines]


def _waiting(mission: Mission) -> HumanRequest:
    """An execution of the mission that is blocked by a question before its only iteration."""
    with transaction.atomic():
        row = mission.dispatch()
        Execution.objects.filter(pk=row.pk).update(
            status=ExecutionStatus.INTERRUPTED.value,
            loop_status=LoopStatus.BLOCKED.value,
            next_run_at=None,
        )
        return requests.open_request(row.pk, 1, about_input("Which part?", "text", []), 3600.0)

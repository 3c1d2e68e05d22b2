"""People's answers: how long until a mission that waited for one is being run again."""

import time
from pathlib import Path

from agency.agent import ToolCall
from agency.agent.result import Asked
from agency.enums import ExecutionStatus, HumanDecision, LoopStatus
from agency.execution import answering
from agency.human import requests
from agency.human.answers import ItemAnswer
from agency.human.asking import about_calls
from agency.models import Execution, HumanRequest, Mission
from benchmarks.queue import HOPS, processes, rows
from benchmarks.queue.hops import PATIENCE, percentile

ANSWERS = 200


def measure(home: Path, log: processes.Log) -> dict[str, float]:
    """Seconds from a person's answer to the start of the claim that goes on with it, one after another."""
    mission = _mission()
    with processes.worker(home / "answers.log"):
        _answered(log, [_waiting(mission) for _ in range(10)])
        gaps = _answered(log, [_waiting(mission) for _ in range(ANSWERS)])
    return {"answer p50": percentile(gaps, 50), "answer p95": percentile(gaps, 95)}


def _answered(log: processes.Log, asked: list[HumanRequest]) -> list[float]:
    before, said = len(log.lines("hop")), dict[str, float]()
    for request in asked:
        item = request.items.get()
        said[str(request.execution_id)] = time.time()
        given = ItemAnswer(item.call_id, item.digest, HumanDecision.APPROVE)
        assert answering.answer(request.pk, [given], request.execution.owner).refused is None
    lines = log.await_lines("hop", before + len(asked), PATIENCE)[before:]
    return [began - said[execution] for execution, _, began, _ in lines]


def _mission() -> Mission:
    agent = rows.agent("owner-0")
    return Mission.objects.create(
        owner=agent.owner, agent=agent, name="bench", prompt="Go.", loop_prompt="Go?"
    )


def _waiting(mission: Mission) -> HumanRequest:
    """An execution before its last hop that wants to make a call, as a run leaves it that was parked."""
    row = rows.one(mission.agent, HOPS - 1)
    Execution.objects.filter(pk=row.pk).update(
        execution_key=None,
        mission=mission,
        status=ExecutionStatus.INTERRUPTED.value,
        loop_status=LoopStatus.RUNNING.value,
        next_run_at=None,
    )
    call = ToolCall(tool_call_id="call-1", name="pay", arguments={"amount": 5})
    return requests.open_request(
        row.pk, HOPS, about_calls([Asked(call, {"type": "object"})], "bench"), 3600.0
    )

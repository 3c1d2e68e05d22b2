"""Executions that wait for a person, and a short way to answer them."""

from collections.abc import Callable
from typing import Any

import pytest

from agency.enums import HumanDecision
from agency.execution import answering
from agency.execution.answering import Answered
from agency.human.answers import ItemAnswer
from agency.models import Execution, HumanRequest
from agency.testing import run_until_parked
from tests.integration.runtime.conftest import Submit, bill, clerk, known_definitions, submit

__all__ = ["bill", "clerk", "known_definitions", "submit"]
Parked = Callable[..., Execution]


@pytest.fixture
def parked(submit: Submit) -> Parked:
    """`parked(task)`: an execution that was run until it waits."""

    def create(task: str = 'spend 5; {"a": "done"}') -> Execution:
        execution = run_until_parked(submit(task))
        assert execution.status == "interrupted"
        return execution

    return create


def open_request(execution: Execution) -> HumanRequest:
    return execution.human_requests.get(status="open")


def say(request: HumanRequest, place: int, decision: str, **more: Any) -> ItemAnswer:
    """A decision on the request's item at `place`, as somebody gives it who sees the item."""
    item = request.items.get(position=place)
    return ItemAnswer(item.call_id, item.digest, HumanDecision(decision), **more)


def answer(execution: Execution, decision: str, place: int = 0, by: Any = None, **more: Any) -> Answered:
    request = open_request(execution)
    return answering.answer(request.pk, [say(request, place, decision, **more)], by or execution.owner)


def results(execution: Execution) -> list[tuple[str, Any]]:
    """Status and content of every tool result on record."""
    rows = execution.events.filter(kind="content").order_by("seq")
    return [
        (part["status"], part["content"])
        for row in rows
        for part in row.content
        if part["type"] == "tool_result"
    ]

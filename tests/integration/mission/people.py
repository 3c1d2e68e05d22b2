"""Missions that ask people: an agent whose tool must be confirmed, a scripted model, ways to answer."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agency.agent import BaseAgent, Effect, Message, ToolCall, Usage, tool
from agency.agent.builtins import ask_human
from agency.agent.llm import LlmRequest, LlmResponse
from agency.enums import EventKind, HumanDecision
from agency.execution import answering, registry
from agency.execution.answering import Answered
from agency.human.answers import ItemAnswer
from agency.models import ConfiguredAgent, Execution, HumanRequest, Mission
from agency.runtime.wiring import use_client

made: list[str] = []
"""The calls of `pay` that were made in this test."""


@tool(requires_confirmation=True)
def pay(amount: int, to: str = "Ada") -> str:
    """Pay an amount."""
    made.append(f"{amount} to {to}")
    return f"paid {amount} to {to}"


@tool(effect=Effect.READ)
def look() -> str:
    """Look into the till."""
    made.append("look")
    return "There is enough."


class Cashier(BaseAgent):
    """Pays when a person agrees."""

    AGENT_KEY = "cashier"
    NAME = "Cashier"
    SYSTEM_PROMPT = "You pay bills."
    TOOLS = [pay, look, ask_human]
    DEFAULT_MODEL = "scripted:tests"


class Model:
    """A worker that answers in turn and a supervisor that decides in turn; each call costs the same."""

    model_name = "scripted"

    def __init__(self, tokens: int = 0, cost: float | None = None) -> None:
        self.answers: list[Any] = []
        self.decisions: list[Any] = []
        self.asked: list[LlmRequest] = []
        self.judged: list[LlmRequest] = []
        self.tokens, self.cost = tokens, cost

    def generate(self, request: LlmRequest) -> LlmResponse:
        if request.output_schema is not None:
            self.judged.append(request)
            return self._said(self.decisions.pop(0))
        self.asked.append(request)
        answer = self.answers.pop(0)
        calls = answer if isinstance(answer, list) else [answer]
        if isinstance(calls[0], ToolCall):
            return LlmResponse(calls, self._usage())
        return self._said(answer)

    def _said(self, what: Any) -> LlmResponse:
        text = what if isinstance(what, str) else json.dumps(what)
        return LlmResponse([Message(role="assistant", content=text)], self._usage())

    def _usage(self) -> Usage:
        return Usage(model_calls=1, input_tokens=self.tokens, cost=self.cost)


@pytest.fixture
def model() -> Iterator[Model]:
    scripted = Model()
    made.clear()
    with registry.isolated(), use_client(scripted):
        registry.register(Cashier)
        yield scripted


@pytest.fixture
def cashier(agency_agent: Callable[..., ConfiguredAgent], model: Model) -> ConfiguredAgent:
    return agency_agent("cashier")


def mission(agent: ConfiguredAgent, **fields: Any) -> Mission:
    given = {"name": "Bills", "prompt": "Pay all bills.", **fields}
    return Mission.objects.create(owner=agent.owner, agent=agent, **given)


def loop(agent: ConfiguredAgent, **fields: Any) -> Mission:
    return mission(agent, loop_prompt="Go.", **fields)


def decision(status: str, **fields: Any) -> dict[str, Any]:
    return {"status": status, "reason": f"because {status}", "summary": f"so far {status}", **fields}


def go_on(what: str) -> dict[str, Any]:
    return decision("continue", next_input=what)


def blocked(question: str, **more: Any) -> dict[str, Any]:
    return decision("blocked", required_input={"question": question, **more})


def complete(evidence: str = "Done.") -> dict[str, Any]:
    return decision("complete", evidence=evidence)


def paying(amount: int, call_id: str = "", **more: Any) -> ToolCall:
    return ToolCall(tool_call_id=call_id or f"pay-{amount}", name="pay", arguments={"amount": amount, **more})


def looking(call_id: str) -> ToolCall:
    return ToolCall(tool_call_id=call_id, name="look")


def open_request(execution: Execution) -> HumanRequest:
    return execution.human_requests.get(status="open")


def say(request: HumanRequest, word: str, place: int = 0, **more: Any) -> ItemAnswer:
    item = request.items.get(position=place)
    return ItemAnswer(item.call_id, item.digest, HumanDecision(word), **more)


def answer(execution: Execution, word: str, place: int = 0, **more: Any) -> Answered:
    request = open_request(execution)
    return answering.answer(request.pk, [say(request, word, place, **more)], execution.owner)


def kinds(execution: Execution) -> list[str]:
    found = execution.events.exclude(kind=EventKind.CONTENT.value).order_by("seq")
    return list(found.values_list("kind", flat=True))


def results(execution: Execution) -> list[tuple[str, Any]]:
    """Status and content of every tool result on record."""
    rows = execution.events.filter(kind="content").order_by("seq")
    parts = [part for row in rows for part in row.content]
    return [(part["status"], part["content"]) for part in parts if part["type"] == "tool_result"]


def state(execution: Execution) -> tuple[str, str | None, int]:
    return execution.status, execution.loop_status, execution.iteration

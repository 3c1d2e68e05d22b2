"""A scripted worker and supervisor, and missions to give them."""

import json
from typing import Any

from agency.agent import Message, ToolCall
from agency.agent.llm import LlmRequest, LlmResponse
from agency.enums import EventKind
from agency.models import ConfiguredAgent, Execution, Mission


class Model:
    """A worker that answers in turn, and a supervisor that decides in turn."""

    model_name = "scripted"

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.decisions: list[Any] = []
        self.asked: list[LlmRequest] = []
        self.judged: list[LlmRequest] = []

    def generate(self, request: LlmRequest) -> LlmResponse:
        if request.output_schema is not None:
            self.judged.append(request)
            return _said(_next(self.decisions))
        self.asked.append(request)
        answer = _next(self.answers)
        return LlmResponse([answer]) if isinstance(answer, ToolCall) else _said(answer)


def _next(script: list[Any]) -> Any:
    """What comes next; an error is raised, as a provider would."""
    said = script.pop(0)
    if isinstance(said, Exception):
        raise said
    return said


def _said(what: Any) -> LlmResponse:
    text = what if isinstance(what, str) else json.dumps(what)
    return LlmResponse([Message(role="assistant", content=text)])


def decision(status: str, **fields: Any) -> dict[str, Any]:
    return {"status": status, "reason": f"because {status}", "summary": f"so far {status}", **fields}


def go_on(what: str) -> dict[str, Any]:
    return decision("continue", next_input=what)


def mission(agent: ConfiguredAgent, **fields: Any) -> Mission:
    given = {"name": "Orders", "prompt": "Sort all orders.", **fields}
    return Mission.objects.create(owner=agent.owner, agent=agent, **given)


def kinds(execution: Execution) -> list[str]:
    """What the log says beside the conversation, in order."""
    found = execution.events.exclude(kind=EventKind.CONTENT.value).order_by("seq")
    return list(found.values_list("kind", flat=True))

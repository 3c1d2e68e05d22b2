"""The baseline: what somebody sends who has only the schema, the same facts without rules or examples."""

from typing import Any

from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema

from agency.agent import LlmRequest, Message
from agency.enums import DecisionStatus
from agency.mission.loop import LoopDecision
from agency.mission.prompt import Matter

_TEXT = {"type": "string", "minLength": 1}
_OWN: dict[DecisionStatus, dict[str, Any]] = {
    DecisionStatus.COMPLETE: {"evidence": _TEXT},
    DecisionStatus.CONTINUE: {"next_input": _TEXT},
    DecisionStatus.WAIT: {
        "wait": {
            "type": "object",
            "properties": {"what_for": _TEXT, "seconds": {"type": "integer", "minimum": 1}},
            "required": ["what_for", "seconds"],
            "additionalProperties": False,
        }
    },
    DecisionStatus.BLOCKED: {
        "required_input": {
            "type": "object",
            "properties": {"question": _TEXT},
            "required": ["question"],
            "additionalProperties": False,
        }
    },
    DecisionStatus.FAILED: {},
}


def _branch(status: DecisionStatus) -> dict[str, Any]:
    properties = {"reason": _TEXT, "status": {"const": status.value}, "summary": _TEXT, **_OWN[status]}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


class StatusBranches(LoopDecision):
    """How a mission goes on after an iteration."""

    # One branch a status: without a grammar for the fields' agreement most answers would be invalid.

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"title": "LoopDecision", "oneOf": [_branch(status) for status in DecisionStatus]}


def raw_request(matter: Matter) -> LlmRequest:
    said = f"Objective: {matter.objective}\n\nTranscript:\n{matter.transcript}\n\nWhat is the decision?"
    return LlmRequest(contents=[Message(role="user", content=said)])

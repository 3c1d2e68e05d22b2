"""The decision's form for models that a grammar holds: one branch a status, with its own fields only.

Small models fill in whatever a form offers. Here the status that is written first leaves no other
field open, so that the grammar keeps the fields' agreement. Hosted models get the plain form: their
strict modes take no alternatives at the top.
"""

from typing import Any

from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema

from agency.enums import DecisionStatus
from agency.mission.loop import LoopDecision

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


class BranchedLoopDecision(LoopDecision):
    """How a mission goes on after an iteration."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"title": "LoopDecision", "oneOf": [_branch(status) for status in DecisionStatus]}

"""The decision's form for small models that a grammar holds: plain words, which code reads as a decision.

Small models fill in whatever a form offers, and decide better on plain words that they write after what
they saw. Where a probe reads the model's state, code decides on that (`judging`), and the model only writes
what belongs to it. They believe an agent that says it is done; so each completion gets a second look
without its words. Hosted models get the plain form: their strict modes take no alternatives at the top.
"""

from typing import Any, ClassVar, cast

from pydantic import GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from agency.agent.llm import LlmClient, LlmRequest
from agency.agent.providers.schema_mode import SHAPE_SHOWN
from agency.enums import DecisionStatus
from agency.mission.decision import LoopDecision
from agency.mission.instruction import is_nothing
from agency.mission.judging import judged
from agency.mission.local_prompt import decision_request
from agency.mission.prompt import Matter
from agency.mission.second_look import look_again

VERDICTS = {
    "all done": DecisionStatus.COMPLETE,
    "go on": DecisionStatus.CONTINUE,
    "wait": DecisionStatus.WAIT,
    "ask a person": DecisionStatus.BLOCKED,
    "impossible": DecisionStatus.FAILED,
}
_TEXT = {"type": "string", "minLength": 1, "maxLength": 200}
_OTHERS = [verdict for verdict in VERDICTS if verdict != "wait"]


def _branch(verdict: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    return _object({"shown": _TEXT, "missing": _TEXT, "verdict": verdict, **own})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_MINUTES = {"type": "integer", "minimum": 1, "maximum": 500_000}
_FORM = {
    "title": "LoopDecision",
    "oneOf": [
        _branch({"enum": _OTHERS}, {"detail": _TEXT}),
        _branch({"const": "wait"}, {"minutes": _MINUTES}),
    ],
}


class BranchedLoopDecision(LoopDecision):
    """How a mission goes on after an iteration."""

    of: ClassVar[DecisionStatus | None] = None
    """The status that has been decided already."""

    @classmethod
    def settled(cls, supervisor: LlmClient, matter: Matter) -> type[LoopDecision]:
        status = judged(supervisor, matter)
        return cls if status is None else _SETTLED[status]

    @classmethod
    def request(cls, matter: Matter) -> LlmRequest:
        return decision_request(matter)

    def confirmed(self, supervisor: LlmClient, matter: Matter) -> LoopDecision:
        if self.status is not DecisionStatus.COMPLETE:
            return self
        return look_again(supervisor, matter, self)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return _FORM

    @model_validator(mode="before")
    @classmethod
    def _read(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        given = cast("dict[str, Any]", data)
        if "verdict" not in given:
            return given
        detail, missing = given.get("detail"), given.get("missing")
        # As text, whatever it is: where no grammar holds the answer, it must fail as an answer and not here.
        status = cls.of or VERDICTS.get(str(given["verdict"]))
        if cls.of is None and status is DecisionStatus.CONTINUE and is_nothing(str(missing)):
            status = DecisionStatus.COMPLETE
        read: dict[str, Any] = {"reason": missing, "status": status, "summary": given.get("shown")}
        if status is DecisionStatus.COMPLETE:
            read["reason"] = given.get("shown")
        if status is DecisionStatus.CONTINUE:
            read["next_input"] = detail
        if status is DecisionStatus.BLOCKED:
            read["required_input"] = {"question": detail}
        if status is DecisionStatus.WAIT:
            minutes = given.get("minutes")
            seconds = 60 * minutes if isinstance(minutes, int) else None
            read["wait"] = {"what_for": missing, "seconds": seconds}
        return read


def _settled(verdict: str, status: DecisionStatus) -> type[LoopDecision]:
    """The form whose verdict stands: it comes first, so that all else is written to fit it."""
    own = {"minutes": _MINUTES} if status is DecisionStatus.WAIT else {"detail": _TEXT}
    properties = {"verdict": {"const": verdict}, "shown": _TEXT, "missing": _TEXT, **own}
    schema = {**_object(properties), "title": "LoopDecision"}

    class Settled(BranchedLoopDecision):
        of = status

        @classmethod
        def request(cls, matter: Matter) -> LlmRequest:
            request = decision_request(matter)
            request.settings[SHAPE_SHOWN] = True
            return request

        @classmethod
        def __get_pydantic_json_schema__(
            cls, core: CoreSchema, handler: GetJsonSchemaHandler
        ) -> dict[str, Any]:
            return schema

    Settled.__name__, Settled.__doc__ = "LoopDecision", LoopDecision.__doc__
    return Settled


_SETTLED = {status: _settled(verdict, status) for verdict, status in VERDICTS.items()}

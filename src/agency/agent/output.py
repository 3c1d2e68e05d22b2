"""The promised shape of a final answer: its schema for the model, and the check of what came back."""

import inspect
from dataclasses import dataclass
from typing import Any, cast

from pydantic import BaseModel, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError

from agency.agent.events import ToolCall
from agency.agent.llm import OutputSchema, ToolSpec, strip_fence
from agency.agent.tool_schema import explain
from agency.errors import ConfigurationError

FINAL_ANSWER = "final_answer"


@dataclass(slots=True)
class Accepted:
    """A final answer that validated."""

    value: Any


@dataclass(slots=True)
class Rejected:
    """Why a final answer did not validate, in words for the model."""

    problem: str


class OutputContract:
    """An `output_type` as the model must fill it; a type that is no object travels as `{"value": …}`."""

    def __init__(self, output_type: Any) -> None:
        self.wrapped = not (inspect.isclass(output_type) and issubclass(output_type, BaseModel))
        try:
            self.model = _model(output_type) if self.wrapped else cast("type[BaseModel]", output_type)
            self._bare = TypeAdapter[Any](output_type)
            schema = self.model.model_json_schema()
        except PydanticUserError as exc:
            raise ConfigurationError(
                f"output_type {output_type!r} has no JSON Schema: {exc.message}"
            ) from exc
        self.schema = OutputSchema(self.model.__name__, schema, schema.get("description"))
        self.tool = ToolSpec(
            FINAL_ANSWER, "Give the final answer. Call it alone, once, when you are done.", schema
        )

    def read_arguments(self, arguments: dict[str, Any]) -> Accepted | Rejected:
        """Check the arguments of a `final_answer` call."""
        try:
            return self._accept(self.model.model_validate(arguments))
        except ValidationError as exc:
            return Rejected(explain(exc))

    def read_text(self, text: str) -> Accepted | Rejected:
        """Check an answer that came as JSON text, fenced or not."""
        body = strip_fence(text).strip()
        try:
            return self._accept(self.model.model_validate_json(body))
        except ValidationError as exc:
            problem = explain(exc)
        if self.wrapped:
            try:
                return Accepted(self._bare.validate_json(body))
            except ValidationError:
                pass
        return Rejected(problem)

    def _accept(self, answer: BaseModel) -> Accepted:
        return Accepted(cast("Any", answer).value if self.wrapped else answer)


def _model(output_type: Any) -> type[BaseModel]:
    return create_model("FinalAnswer", value=(output_type, ...))


def read_call(contract: OutputContract, call: ToolCall) -> Accepted | Rejected:
    """Check a call of `final_answer`."""
    if call.invalid is not None:
        return Rejected("the arguments are not a JSON object")
    return contract.read_arguments(call.arguments)

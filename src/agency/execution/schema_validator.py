"""The validator that checks an answer against a type or a JSON Schema and names the path of each fault."""

import json
from collections.abc import Callable, Iterable
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from agency.errors import ConfigurationError
from agency.execution.inputs import ExecutionInputType
from agency.execution.output import parse_json
from agency.execution.scratchpad import ToolScratchpad
from agency.execution.validators import (
    BaseExecutionValidator,
    ValidatorFailureResponse,
    ValidatorResponse,
    ValidatorSuccessResponse,
    json_fault,
)

MAX_FAULTS = 10
MAX_FAULT_LENGTH = 300


class DoesNotFit(ValueError):
    """A value does not fit a schema. `faults` are pairs of path and message."""

    def __init__(self, faults: list[tuple[str, str]]) -> None:
        super().__init__(_feedback(faults))
        self.faults = faults


class MatchesSchemaValidator(BaseExecutionValidator):
    """The response must be JSON that fits `schema`: a Pydantic model or other type, or a JSON Schema (dict).

    In `VALIDATORS` write `MatchesSchemaValidator(Invoice)`. A JSON Schema's references must lie inside it.
    """

    def __init__(self, schema: Any) -> None:
        self._check = (
            _json_schema(cast("dict[str, Any]", schema)) if isinstance(schema, dict) else _type(schema)
        )

    def fresh(self) -> "MatchesSchemaValidator":
        """The same object: it keeps nothing between validations."""
        return self

    def validate(
        self, response: str, execution_input: ExecutionInputType | None, tool_scratchpad: ToolScratchpad
    ) -> ValidatorResponse:
        if fault := json_fault(response):
            return ValidatorFailureResponse(fault)
        try:
            self.parse(response)
        except DoesNotFit as exc:
            return ValidatorFailureResponse(_feedback(exc.faults))
        return ValidatorSuccessResponse()

    def parse(self, response: str) -> Any:
        """The response as a JSON value, of a Pydantic type with conversions and defaults; or `DoesNotFit`."""
        return self._check(parse_json(response))


def _feedback(faults: list[tuple[str, str]]) -> str:
    lines = [f"- {path or '(whole answer)'}: {message[:MAX_FAULT_LENGTH]}" for path, message in faults]
    if len(lines) > MAX_FAULTS:
        lines[MAX_FAULTS:] = [f"- and {len(lines) - MAX_FAULTS} more"]
    intro = "Your answer does not have the wanted shape. Correct this and send the whole JSON again:"
    return "\n".join((intro, *lines))


Check = Callable[[Any], Any]


def _type(schema: Any) -> Check:
    adapter: TypeAdapter[Any] = TypeAdapter(schema)

    def check(value: Any) -> Any:
        try:
            # Through JSON, so that a strict model still takes a date or a tuple from its JSON form.
            made = adapter.validate_json(json.dumps(value))
        except ValidationError as exc:
            raise DoesNotFit([(_dotted(error["loc"]), error["msg"]) for error in exc.errors()]) from exc
        return adapter.dump_python(made, mode="json", by_alias=True)

    return check


def _json_schema(schema: dict[str, Any]) -> Check:
    from jsonschema import Draft202012Validator, SchemaError, validators
    from referencing import Registry

    chosen: Any = validators.validator_for(schema, default=Draft202012Validator)
    try:
        chosen.check_schema(schema)
    except SchemaError as exc:
        raise ConfigurationError(
            f"MatchesSchemaValidator: the JSON Schema is wrong at {exc.json_path}: {exc.message}"
        ) from exc
    # An empty registry: a reference out of the schema must not become a network request.
    checker = chosen(schema, registry=cast("Any", Registry)(), format_checker=chosen.FORMAT_CHECKER)

    def check(value: Any) -> Any:
        errors = sorted(checker.iter_errors(value), key=lambda error: error.json_path)
        if errors:
            raise DoesNotFit([(_dotted(error.absolute_path), error.message) for error in errors])
        return value

    return check


def _dotted(path: Iterable[Any]) -> str:
    return ".".join(str(part) for part in path)

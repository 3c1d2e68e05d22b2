"""The arguments of an MCP server's tool, checked against the JSON Schema that the server gives."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from agency.agent.injection import InjectedParameter, ToolCallInfo
from agency.agent.mcp.server import McpServer
from agency.agent.text import cut
from agency.agent.tool_schema import Parameters
from agency.errors import ToolsUnavailable

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError as Fault
    from mcp.types import Tool as Listed

FAULTS = 10


class Anything(BaseModel):
    """Stands where a tool of ours has the model of its arguments: the server's JSON Schema decides here."""


@dataclass(frozen=True, slots=True)
class SchemaParameters(Parameters):
    """Parameters that the server describes by a JSON Schema; it checks the arguments itself once more."""

    faults: Callable[[Any], "list[Fault]"] = lambda _: []

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        given = dict(arguments)
        details = {
            detail.get("loc", ()): detail for fault in self.faults(given) for detail in _details(fault)
        }
        if details:
            raise ValidationError.from_exception_data("arguments", list(details.values())[:FAULTS])
        return {"arguments": given}


def parameters(server: McpServer, listed: "Listed") -> SchemaParameters:
    schema = {key: value for key, value in listed.input_schema.items() if key != "$schema"}
    schema.setdefault("type", "object")
    schema.setdefault("properties", {})
    return SchemaParameters(
        model=Anything,
        schema=schema,
        names={},
        always=frozenset(),
        injected={"info": InjectedParameter(ToolCallInfo, False)},
        faults=_checker(server, listed),
    )


def _checker(server: McpServer, listed: "Listed") -> "Callable[[Any], list[Fault]]":
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    kind = validator_for(listed.input_schema, default=Draft202012Validator)
    try:
        kind.check_schema(listed.input_schema)
    except SchemaError as exc:
        raise ToolsUnavailable(
            f"the MCP server {server.name!r} describes its tool {listed.name!r} by a broken JSON Schema "
            f"({cut(exc.message, 200)}); leave the tool out with only=[...]"
        ) from exc
    # An empty registry: a schema from outside must not make this process fetch a URL.
    validator = kind(listed.input_schema, registry=Registry())

    def faults(arguments: Any) -> "list[Fault]":
        try:
            return list(validator.iter_errors(arguments))
        except (Unresolvable, RecursionError):
            return []  # only the server can read its schema, and it checks for itself

    return faults


def _details(fault: "Fault") -> list[InitErrorDetails]:
    path, given = tuple(fault.absolute_path), cast("Any", fault.instance)
    if fault.validator == "required":
        absent = [name for name in cast("list[str]", fault.validator_value) if name not in given]
        return [InitErrorDetails(type="missing", loc=(*path, name), input=given) for name in absent]
    said = PydanticCustomError("json_schema", "{problem}", {"problem": cut(fault.message, 300)})
    return [InitErrorDetails(type=said, loc=path, input=given)]

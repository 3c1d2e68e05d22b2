"""JSON Schemas of what people may answer: as they are stored, and what a value has against one."""

import re
from collections.abc import Iterable
from typing import Any, cast

from agency.agent.text import clean_json
from agency.redaction import redact

_VALUES = frozenset({"const", "default", "enum", "example", "examples"})
"""What in a JSON Schema is a value, and not a description of one."""


def storable_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A JSON Schema as it may be stored: a field named `api_key` is no secret, but its default is one."""
    return clean_json(_masked(schema, ""))


def faults(schema: dict[str, Any], value: Any) -> Iterable[Any]:
    """What a value has against a schema; nothing if only the server that gave the schema can read it."""
    from jsonschema.exceptions import UnknownType
    from referencing.exceptions import Unresolvable

    try:
        return list(_validator(schema).iter_errors(value))
    except (Unresolvable, UnknownType, RecursionError, re.error):
        return []  # the tool checks its arguments for itself


def _masked(schema: Any, name: str) -> Any:
    """`name` is that of the field which the schema describes, as far as it is known."""
    if isinstance(schema, dict):
        parts = cast("dict[str, Any]", schema).items()
        return {
            key: redact({name: part})[name] if key in _VALUES else _masked(part, key) for key, part in parts
        }
    if isinstance(schema, list):
        return [_masked(part, name) for part in cast("list[Any]", schema)]
    return redact(schema)


def _validator(schema: dict[str, Any]) -> Any:
    from jsonschema import Draft202012Validator, validators
    from referencing import Registry

    kind: Any = validators.validator_for(schema, default=Draft202012Validator)
    # An empty registry: a reference out of the schema must not become a network request.
    return kind(schema, registry=cast("Any", Registry)(), format_checker=kind.FORMAT_CHECKER)

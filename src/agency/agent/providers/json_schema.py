"""Makes a JSON Schema digestible for the grammar of a local server and readable for a small model.

References are put in place, closed objects made explicit, keywords that the grammar chokes on dropped.
"""

from typing import Any, cast

Schema = dict[str, Any]
_DEPTH = 6
_ITEMS = 30
"""Where a list has no bound of its own: a small model that has begun a list may never end it."""
_KEEP = frozenset(
    {
        "type", "enum", "const", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems",
        "required",
    }
)  # fmt: skip
_BRANCHES = ("anyOf", "oneOf", "allOf")


def flatten(schema: Schema) -> Schema:
    """The same shape without `$ref`, `pattern`, `format` and prose; recursion ends in a free object."""
    definitions: dict[str, Schema] = {**schema.get("$defs", {}), **schema.get("definitions", {})}
    return _flat(schema, definitions, 0)


def _flat(schema: Schema, definitions: dict[str, Schema], depth: int) -> Schema:
    if depth > _DEPTH * 4:
        return {"type": "object"}
    if "$ref" in schema:
        name = str(schema["$ref"]).rsplit("/", 1)[-1]
        return _flat(definitions.get(name, {"type": "object"}), definitions, depth + 4)
    flat: Schema = {key: value for key, value in schema.items() if key in _KEEP}
    for branch in _BRANCHES:
        if branch in schema:
            flat["anyOf"] = [_flat(each, definitions, depth + 1) for each in schema[branch]]
    _flat_object(schema, flat, definitions, depth)
    _flat_array(schema, flat, definitions, depth)
    return _lone(flat)


def _flat_object(schema: Schema, flat: Schema, definitions: dict[str, Schema], depth: int) -> None:
    if "properties" in schema:
        properties = cast("dict[str, Schema]", schema["properties"])
        flat["properties"] = {name: _flat(each, definitions, depth + 1) for name, each in properties.items()}
        flat["additionalProperties"] = False
    elif isinstance(extra := schema.get("additionalProperties"), dict):
        flat["additionalProperties"] = _flat(cast("Schema", extra), definitions, depth + 1)


def _flat_array(schema: Schema, flat: Schema, definitions: dict[str, Schema], depth: int) -> None:
    if isinstance(items := schema.get("items"), dict):
        flat["items"] = _flat(cast("Schema", items), definitions, depth + 1)
        flat.setdefault("maxItems", _ITEMS)
    elif "prefixItems" in schema:
        flat["prefixItems"] = [_flat(each, definitions, depth + 1) for each in schema["prefixItems"]]


def _lone(flat: Schema) -> Schema:
    """`allOf` of one (how references with a description are written) is that one."""
    branches = flat.get("anyOf")
    return branches[0] if branches and len(branches) == 1 else flat


def describe(schema: Schema) -> str:
    """The shape in one line as a small model reads it best: `{"name": text (the vendor), ...}`."""
    definitions: dict[str, Schema] = {**schema.get("$defs", {}), **schema.get("definitions", {})}
    return _words(schema, definitions, 0)


def describe_properties(schema: Schema) -> str:
    """Only the inside of an object's braces; empty for an object without properties."""
    definitions: dict[str, Schema] = {**schema.get("$defs", {}), **schema.get("definitions", {})}
    return _properties(schema, definitions, 0)


def _words(schema: Schema, definitions: dict[str, Schema], depth: int) -> str:
    if "$ref" in schema:
        name = str(schema["$ref"]).rsplit("/", 1)[-1]
        target = definitions.get(name, {})
        return name if depth > _DEPTH else _words(target, definitions, depth + 1)
    if "enum" in schema or "const" in schema:
        return " or ".join(f'"{each}"' for each in schema.get("enum", [schema.get("const")]))
    for branch in _BRANCHES:
        if branch in schema:
            return " or ".join(_words(each, definitions, depth + 1) for each in schema[branch])
    if schema.get("type") == "array":
        return f"[{_words(schema.get('items', {}), definitions, depth + 1)}, ...]"
    if "properties" in schema:
        return "{" + _properties(schema, definitions, depth) + "}"
    return _TYPES.get(str(schema.get("type")), str(schema.get("type", "any value")))


_TYPES = {"string": "text", "integer": "whole number", "boolean": "true or false", "object": "an object"}


def _properties(schema: Schema, definitions: dict[str, Schema], depth: int) -> str:
    properties = cast("dict[str, Schema]", schema.get("properties", {}))
    return ", ".join(
        f'"{name}": {_words(each, definitions, depth + 1)}{_note(each)}' for name, each in properties.items()
    )


def _note(schema: Schema) -> str:
    text = str(schema.get("description", "")).strip()
    return f" ({text})" if text else ""

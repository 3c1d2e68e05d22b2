"""Schemas for a local server's grammar, and their one-line description for a small model."""

from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Literal

from pydantic import BaseModel, Field

from agency.agent.providers.json_schema import describe, describe_properties, flatten


class Kind(Enum):
    BIG = "big"
    SMALL = "small"


class Line(BaseModel):
    text: str = Field(min_length=1, description="what was sold")
    amount: Decimal


class Bill(BaseModel):
    kind: Kind
    state: Literal["paid"] = "paid"
    day: date
    lines: list[Line]
    first: Line = Field(description="the first line")
    note: str | None = None
    tags: dict[str, int] = {}


class Tree(BaseModel):
    children: list["Tree"] = []


def test_references_are_put_in_place_and_objects_closed() -> None:
    flat = flatten(Bill.model_json_schema())
    assert "$ref" not in str(flat)
    assert "$defs" not in flat
    assert flat["additionalProperties"] is False
    assert flat["properties"]["kind"] == {"type": "string", "enum": ["big", "small"]}
    assert flat["properties"]["lines"]["items"] == flat["properties"]["first"]
    assert flat["properties"]["first"]["properties"]["text"] == {"type": "string", "minLength": 1}


def test_what_the_grammar_chokes_on_is_dropped() -> None:
    text = str(flatten(Bill.model_json_schema()))
    assert not any(word in text for word in ("pattern", "format", "title", "default", "description"))


def test_optional_values_keep_both_forms() -> None:
    flat = flatten(Bill.model_json_schema())
    assert flat["properties"]["note"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert flat["properties"]["tags"] == {"type": "object", "additionalProperties": {"type": "integer"}}


def test_a_list_without_a_bound_gets_one() -> None:
    assert flatten({"type": "array", "items": {"type": "number"}})["maxItems"] == 30
    assert flatten({"type": "array", "items": {}, "maxItems": 2})["maxItems"] == 2


def test_recursion_ends_in_a_free_object() -> None:
    assert "{'type': 'object'}" in str(flatten(Tree.model_json_schema()))


def test_a_schema_is_described_in_one_line() -> None:
    assert describe(Bill.model_json_schema()) == (
        '{"kind": "big" or "small", "state": "paid", "day": text, '
        '"lines": [{"text": text (what was sold), "amount": number or text}, ...], '
        '"first": {"text": text (what was sold), "amount": number or text} (the first line), '
        '"note": text or null, "tags": an object}'
    )


def test_arguments_are_described_without_braces() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "b": {"type": "boolean"}}}
    assert describe_properties(schema) == '"n": whole number, "b": true or false'
    assert describe_properties({"type": "object"}) == ""


def test_a_recursive_schema_can_be_described() -> None:
    assert "children" in describe(Tree.model_json_schema())

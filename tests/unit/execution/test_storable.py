"""What is stored holds no secret and nothing unwritable, whichever way it gets there."""

import json
from typing import Any

import pytest

from agency.agent import Message, ProviderPart, ToolCall
from agency.execution.storable import models_json, storable, storable_json
from agency.redaction import MASK

VALUES = [
    {"a": [1, None, "x", 2.5], "b": "Grüße"},
    {"password": "hunter2"},
    {"headers": [{"Cookie": "a=b", "X": "sk-0123456789abcdefghij"}]},
    {"text": "x\x00y", "k\x00": 1},
    {"lone": "\ud800", "pair": "\U0001f600"},
    {"nan": float("nan"), "inf": [float("-inf")]},
    "Bearer abcdefgh12345",
    [],
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_the_text_is_that_of_the_storable_value(value: Any) -> None:
    text = storable_json(value)
    assert text is not None
    assert json.loads(text) == storable(value)
    text.encode()
    assert "\\u0000" not in text


def test_nothing_is_an_empty_column() -> None:
    assert storable_json(None) is None


def test_harmless_models_are_written_as_they_are() -> None:
    items = [
        Message(role="assistant", content="Grüße\n→ 世界"),
        ToolCall(tool_call_id="c", name="add", arguments={"a": 1}),
    ]
    text = models_json(items)
    assert text is not None
    assert json.loads(text) == [item.model_dump(mode="json") for item in items]


@pytest.mark.parametrize(
    "content", ["a\x00b", "\ud800", "the key sk-0123456789abcdefghij", "a token", '{"password": "x"}']
)
def test_models_that_may_hold_what_must_not_be_stored_are_not(content: str) -> None:
    assert models_json([Message(role="user", content=content)]) is None


@pytest.mark.parametrize(
    "key", ["password", "api_key", "credentials", "Cookie", "Authorization", "privateKey"]
)
def test_no_key_that_names_a_secret_is_overlooked(key: str) -> None:
    items = [ProviderPart(provider="p", data={key: "hunter2"})]
    assert models_json(items) is None
    assert storable([item.model_dump() for item in items])[0]["data"] == {key: MASK}

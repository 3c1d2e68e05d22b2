"""The one door to storage: nothing secret passes it, and nothing that a database refuses.

What is plainly harmless, most of all that is stored, is found so by a look at its JSON text.
"""

import json
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError

from agency.agent.text import clean_json
from agency.redaction import may_hold_secret, redact

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def storable(value: Any) -> Any:
    """A JSON value as it may be stored: nothing secret, nothing that a database refuses."""
    return clean_json(redact(value))


def storable_json(value: Any) -> str | None:
    """`value` as the text of what `storable` gives; `None` stays `None`, which is an empty column."""
    if value is None:
        return None
    text = as_json(value)
    return text if is_plain(text) else as_json(storable(value))


def models_json(models: Sequence[BaseModel]) -> str | None:
    """The JSON text of models if it may be stored as it is, else `None`: they must pass `storable`."""
    try:
        texts = [model.__pydantic_serializer__.to_json(model) for model in models]
    except PydanticSerializationError:  # a lone surrogate
        return None
    text = f"[{b','.join(texts).decode()}]"
    return text if is_plain(text) else None


def is_plain(text: str) -> bool:
    """Whether JSON text plainly holds nothing that must be masked or cleaned."""
    return "\\u0000" not in text and not may_hold_secret(text)


def as_json(value: Any) -> str:
    """JSON text, strictly: Python's NaN and infinities, which a database refuses, become text."""
    try:
        return _encode(value)
    except ValueError:
        return _encode(clean_json(value))

"""Text and values from outside made safe to store: no NUL, no lone surrogate, JSON only, capped."""

import hashlib
import json
import math
from typing import Any, cast

from pydantic_core import PydanticSerializationError, to_jsonable_python

from agency.redaction import may_hold_secret, redact

RESULT_LIMIT = 100_000
ERROR_LIMIT = 2_000
DEEPEST = 100
_said = json.JSONEncoder(ensure_ascii=False, default=str).encode
_canonical = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str).encode


def clean(text: str) -> str:
    """`text` without NUL bytes and lone surrogates; neither can be written to a database."""
    if "\x00" in text:
        text = text.replace("\x00", "")
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean_json(value: Any) -> Any:
    """A JSON value whose texts, keys included, are clean, and whose numbers are finite."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {clean(key): clean_json(item) for key, item in items}
    if isinstance(value, list):
        return [clean_json(item) for item in cast("list[Any]", value)]
    return value


def is_clean(value: Any, depth: int = DEEPEST) -> bool:
    """Whether a value is plainly clean: a quick look, which does not vouch for text beyond ASCII."""
    if isinstance(value, str):
        return value.isascii() and "\x00" not in value
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        known = cast("dict[str, Any]", value)
        items = [*known, *known.values()]
    elif isinstance(value, list):
        items = cast("list[Any]", value)
    else:
        return True
    if not depth:
        return False
    for item in items:
        if type(item) is str:  # most are; a call for each would cost more than the look
            if "\x00" in item or not item.isascii():
                return False
        elif type(item) is not int and not is_clean(item, depth - 1):
            return False
    return True


def is_deep(value: Any, depth: int = DEEPEST) -> bool:
    """Whether lists and objects are nested deeper than what reads them can be trusted with."""
    if isinstance(value, dict):
        value = list(cast("dict[str, Any]", value).values())
    if not isinstance(value, list):
        return False
    return not depth or any(is_deep(item, depth - 1) for item in cast("list[Any]", value))


def to_payload(value: Any, limit: int = RESULT_LIMIT) -> Any:
    """A tool's return value as JSON of at most `limit` characters; a longer one says that it is cut."""
    if value is None or isinstance(value, bool | int):
        return value
    payload = as_payload(value)
    text = payload if isinstance(payload, str) else canonical(payload)
    return payload if len(text) <= limit else cut(text, limit)


def as_payload(value: Any) -> Any:
    """A tool's return value as clean JSON, however long."""
    return clean_json(_jsonable(value))


def cut(text: str, limit: int, more: str = "") -> str:
    """The first `limit` characters, with a visible note where something is missing; `more` ends the note."""
    if len(text) <= limit:
        return text
    said = f"cut here: {len(text):,} characters in all, the first {limit:,} are shown"
    return f"{text[:limit]}\n[{said}{more and f'; {more}'}]"


def canonical(value: Any) -> str:
    """JSON text that is the same for equal values, whatever the order of their keys."""
    return _canonical(value)


def fingerprint(value: Any) -> str:
    """Sixteen hex digits that tell JSON values apart, the same for one that was stored and read again.

    Secrets are masked first, as they are in what is stored: two values that differ in nothing else are one.
    """
    stored = _as_stored(value)
    text = canonical(stored)
    if may_hold_secret(text):
        text = canonical(redact(stored))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _as_stored(value: Any) -> Any:
    """A JSON value with whole floats as integers, since PostgreSQL gives 1e16 back as one."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _as_stored(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_as_stored(item) for item in cast("list[Any]", value)]
    return value


def as_text(value: Any) -> str:
    """A JSON value as a person or a model reads it: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else _said(value)


def describe_error(error: BaseException) -> str:
    """Type and message of an exception, safe to show: no traceback, cut to a readable length."""
    name = type(error).__name__
    try:
        message = str(error).strip()
    except Exception:  # a tool's own exception class may fail at this, too
        message = ""
    return cut(clean(f"{name}: {message}" if message else name), ERROR_LIMIT)


def _jsonable(value: Any) -> Any:
    if isinstance(value, str):
        return value
    try:
        return _convert(value, "utf8")
    except (PydanticSerializationError, UnicodeDecodeError):
        return _convert(value, "base64")


def _convert(value: Any, bytes_mode: Any) -> Any:
    return to_jsonable_python(value, bytes_mode=bytes_mode, fallback=str)

"""Turns what vendors raise into the `ModelError` family: worth a retry, refused, too long, not usable.

Messages are fit to be stored and shown: cut, and free of keys.
"""

import os
import re
from typing import Any, cast

from agency.errors import (
    AgencyError,
    ConfigurationError,
    ContextOverflow,
    ModelOutputInvalid,
    ModelRefused,
    ModelUnavailable,
)

_LONGEST = 500
_KEY_SHAPE = re.compile(
    r"\b(?:sk|pk|rk|xai|gsk|AIza)[-_][^\s'\",}]{6,}|\bAIza[\w-]{10,}|(?i:bearer\s+)[^\s'\",}]+"
)
_TOO_LONG = re.compile(
    r"context (?:length|size|window)|exceed_context|maximum context|prompt is too long", re.I
)


def expected() -> tuple[type[Exception], ...]:
    """The exceptions that a request through pydantic-ai may raise.

    A malformed answer shows there as whatever reading it raised.
    """
    from pydantic_ai.exceptions import AgentRunError, UserError

    return (AgentRunError, UserError, LookupError, ValueError)


def translate(exc: Exception, model: str) -> AgencyError:
    """Our error for theirs; the message names the model and what the vendor said."""
    from pydantic_ai import exceptions as theirs

    text = f"{model}: {said(exc)}"
    if isinstance(exc, (LookupError, ValueError)):
        return ModelOutputInvalid(f"{model}: the answer cannot be read ({type(exc).__name__})")
    if isinstance(exc, theirs.UserError):
        return ConfigurationError(text)
    if isinstance(exc, theirs.ModelAPIError):
        return _api_error(exc, text)
    if isinstance(exc, theirs.ContentFilterError):
        return ModelRefused(text)
    return ModelOutputInvalid(text, redact(str(getattr(exc, "body", None) or ""))[:2000])


def _api_error(exc: Any, text: str) -> AgencyError:
    from pydantic_ai import exceptions as theirs

    if isinstance(exc, theirs.ModelContextWindowExceededError):
        return ContextOverflow(text)
    if isinstance(exc, theirs.ModelRequestRejectedError):
        return ContextOverflow(text) if _TOO_LONG.search(text) else ModelRefused(text)
    if isinstance(exc, theirs.ModelQuotaExceededError):
        return ModelRefused(text)
    status = int(getattr(exc, "status_code", 0))
    if 400 <= status < 500 and status not in {408, 409, 425, 429}:
        return ModelRefused(text)
    return ModelUnavailable(text, exc.retry_after, is_limit=status == 429)


def said(exc: Exception) -> str:
    """The vendor's own words where there are any, with the status, without keys."""
    body: Any = getattr(exc, "body", None)
    words = _message(body) or str(exc) or type(exc).__name__
    status = getattr(exc, "status_code", None)
    prefix = f"status {status}: " if status else ""
    return redact(f"{prefix}{words}")[:_LONGEST]


def _message(body: Any) -> str | None:
    if not isinstance(body, dict):
        return None
    fields = cast("dict[str, Any]", body)
    inner = fields.get("error", fields)
    if isinstance(inner, dict):
        inner = cast("dict[str, Any]", inner).get("message")
    return inner if isinstance(inner, str) else None


def redact(text: str) -> str:
    """The text without the values of key variables of the environment and what looks like a key."""
    for name, value in os.environ.items():
        if name.endswith(("_API_KEY", "_TOKEN", "_SECRET")) and len(value) >= 8:
            text = text.replace(value, "[key]")
    return _KEY_SHAPE.sub("[key]", text)

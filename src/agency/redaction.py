"""Takes secrets out of what is stored, logged or sent: by the name of a key, and by the shape of a text."""

import json
import logging
import re
from typing import Any, cast

from pydantic_core import SchemaValidator, core_schema

MASK = "[redacted]"

_KEY = re.compile(
    r"passwo?rd|passwd|passphrase|secret|credential|private[-_]?key|api[-_]?key|^authorization$|^cookie$"
    r"|^set-cookie$|(access|refresh|auth|bearer|session|id)[-_]?token|^token$",
    re.IGNORECASE,
)
_SHAPE = re.compile(
    r"(?P<header>\bauthorization[\"']?\s?[=:]\s?[\"']?(?:(?:bearer|basic|digest|token)\s+)?)[\w.~+/=-]{8,}"
    r"|(?P<kept>\bBearer\s+)[\w.~+/=-]{8,}"
    r"|(?P<url>://[^\s:/@]{1,200}:)[^\s@/]{1,500}(?=@)"
    r"|(?P<pair>(?:password|passwd|passphrase|secret|api[-_]?key|(?:access|auth)[-_]?token)"
    r"[\"']?\s?[=:]\s?[\"']?)"
    r"[^\s\"'&,;]{4,}"
    r"|(?P<query>[?&](?:key|token|sig|signature)=)[^\s&\"']{4,}"
    r"|\b(?:sk|pk|rk)-[\w-]{16,}"
    r"|\bagency_[\w-]{20,}"
    r"|\bgh[oprsu]_\w{20,}|\bgithub_pat_\w{20,}|\bxox[abprs]-[\w-]{10,}"
    r"|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}"
    r"|\beyJ[\w-]{10,2000}\.[\w-]{10,4000}\.[\w-]{5,}"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
    re.IGNORECASE,
)
_HINTS = (
    *("bearer", "://", "passw", "secret", "key", "token", "sig=", "signature=", "sk-", "pk-", "rk-"),
    *("agency_", "gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_pat_", "xox", "akia", "aiza", "eyj"),
)
"""One of these is in every text that the shapes match; looking for them is much faster."""
_KEY_HINTS = ("passphrase", "credential", "private", "authorization", "cookie")
"""With the others: one of these is in every key that names a secret."""
_HINTED = SchemaValidator(
    core_schema.str_schema(pattern="|".join(re.escape(hint) for hint in (*_HINTS, *_KEY_HINTS)))
)
"""Finds any of them in one pass, ten times as fast as a search for each: every payload is looked through."""


def redact_text(text: str) -> str:
    """`text` with everything that looks like a secret masked; what introduces it (`key=`) stays."""
    if not may_hold_secret(text):
        return text
    return _SHAPE.sub(_mask, _json_redacted(text))


def may_hold_secret(text: str) -> bool:
    """A quick look at a text, or at the JSON text of a value: `False` means that nothing in it is masked."""
    if _HINTED.isinstance_python(text.lower()):
        return True
    return not (text.isascii() or _encodes(text))  # what cannot be encoded was not looked through


def redact(value: Any) -> Any:
    """A JSON value with secrets masked: texts by their shape, and all texts under keys that name a secret."""
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, dict):
        return {key: _entry(key, item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [redact(item) for item in cast("list[Any]", value)]
    return value


class _Redacting(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = _writable(redact_text(record.getMessage())), ()
        if record.exc_info:
            record.exc_text = _writable(redact_text(_FORMATTER.formatException(record.exc_info)))
            record.exc_info = None
        return True


_FORMATTER = logging.Formatter()
_REDACTING = _Redacting()


def safe_logger(name: str) -> logging.Logger:
    """The logger of this name, whose messages and tracebacks reach every handler with secrets masked."""
    log = logging.getLogger(name)
    log.addFilter(_REDACTING)
    return log


def _entry(key: str, item: Any) -> Any:
    return _secret(item) if _KEY.search(key) else redact(item)


def _json_redacted(text: str) -> str:
    """A text that is a JSON object or list, as answers of models are, with what its keys name masked."""
    if text[:1] not in {"{", "["}:
        return text
    try:
        value = json.loads(text)
        masked = redact(value)
    except (ValueError, RecursionError):
        return text
    return text if masked == value else json.dumps(masked, ensure_ascii=False)


def _writable(text: str) -> str:
    """What every handler can write: a lone surrogate would make it fail, a NUL byte hide the rest."""
    return text.replace("\x00", "").encode("utf-8", "backslashreplace").decode()


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _secret(item: Any) -> Any:
    """What stands under a key that names a secret, with every text masked."""
    if isinstance(item, str):
        return MASK if item else item
    if isinstance(item, dict):
        return {key: _secret(one) for key, one in cast("dict[str, Any]", item).items()}
    if isinstance(item, list):
        return [_secret(one) for one in cast("list[Any]", item)]
    return item


def _mask(match: re.Match[str]) -> str:
    kept = next((text for text in match.groupdict().values() if text), "")
    return kept + MASK

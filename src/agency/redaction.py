"""Takes secrets out of what is stored, logged or sent: by the name of a key, and by the shape of a text."""

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import SchemaValidator, core_schema

if TYPE_CHECKING:
    from logging import Logger, LogRecord

MASK = "[redacted]"

_HINTS = (
    *("bearer", "://", "passw", "secret", "key", "token", "sig=", "signature=", "sk-", "pk-", "rk-"),
    *("agency_", "gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_pat_", "xox", "akia", "aiza", "eyj"),
)
"""One of these is in every text that the shapes match; looking for them is much faster."""
_KEY_HINTS = ("passphrase", "credential", "private", "authorization", "cookie")
"""With the others: one of these is in every key that names a secret."""


def redact_text(text: str) -> str:
    """`text` with everything that looks like a secret masked; what introduces it (`key=`) stays."""
    if not may_hold_secret(text):
        return text
    return _shape().sub(_mask, _json_redacted(text))


def may_hold_secret(text: str) -> bool:
    """A quick look at a text, or at the JSON text of a value: `False` means that nothing in it is masked."""
    if _hinted().isinstance_python(text.lower()):
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


def safe_logger(name: str) -> "Logger":
    """The logger of this name, whose messages and tracebacks reach every handler with secrets masked."""
    from logging import getLogger  # which the core, that logs nothing, should not wait for

    log = getLogger(name)
    log.addFilter(_redact_record)
    return log


def _redact_record(record: "LogRecord") -> bool:
    from logging import Formatter

    record.msg, record.args = _writable(redact_text(record.getMessage())), ()
    if record.exc_info:
        record.exc_text = _writable(redact_text(Formatter().formatException(record.exc_info)))
        record.exc_info = None
    return True


@cache
def _hinted() -> SchemaValidator:
    """Finds any hint in one pass, ten times as fast as a search for each: every payload is looked through."""
    pattern = "|".join(re.escape(hint) for hint in (*_HINTS, *_KEY_HINTS))
    return SchemaValidator(core_schema.str_schema(pattern=pattern))


@cache
def _key() -> re.Pattern[str]:
    """What a key that names a secret has in it. Compiled at the first use: no import should wait for it."""
    return re.compile(
        r"passwo?rd|passwd|passphrase|secret|credential|private[-_]?key|api[-_]?key|^authorization$|^cookie$"
        r"|^set-cookie$|(access|refresh|auth|bearer|session|id)[-_]?token|^token$",
        re.IGNORECASE,
    )


@cache
def _shape() -> re.Pattern[str]:
    """What texts with a secret in them look like."""
    return re.compile(
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


def _entry(key: str, item: Any) -> Any:
    return _secret(item) if _key().search(key) else redact(item)


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

"""Reads the ready project's choices from the environment; a wrong one is a sentence with the fix."""

from collections.abc import Mapping

from agency.errors import ConfigurationError

FORMATS = ("line", "json")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def count(environ: Mapping[str, str], name: str, default: int) -> int:
    """The whole number from 1 in a variable."""
    text = environ.get(name, "").strip() or str(default)
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ConfigurationError(f"{name} is {text!r}. Set it to a whole number from 1.")
    return int(text)


def log_level(environ: Mapping[str, str]) -> str:
    """The level of `AGENCY_LOG_LEVEL`, in capitals."""
    text = environ.get("AGENCY_LOG_LEVEL", "").strip() or "INFO"
    if text.upper() not in LEVELS:
        raise ConfigurationError(f"AGENCY_LOG_LEVEL is {text!r}. Set it to one of {', '.join(LEVELS)}.")
    return text.upper()


def log_format(environ: Mapping[str, str]) -> str:
    """How log lines look: `line` for people, `json` for programs (`AGENCY_LOG_FORMAT`)."""
    text = environ.get("AGENCY_LOG_FORMAT", "").strip().lower() or "line"
    if text not in FORMATS:
        raise ConfigurationError(f"AGENCY_LOG_FORMAT is {text!r}. Set it to one of {', '.join(FORMATS)}.")
    return text

"""Tools that many agents want: ask a person, calculate, tell the time, read from the web."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from agency.agent.calculator import calculate
from agency.agent.http_get import HttpGet
from agency.agent.injection import HumanAnswer
from agency.agent.tools import Tool, tool
from agency.enums import Effect
from agency.errors import InvalidInput


@tool(effect=Effect.READ)
def ask_human(question: str, answer: HumanAnswer, choices: list[str] | None = None) -> object:
    """Ask a person. Use it only for what you cannot find out yourself and cannot go on without.

    Args:
        question: One clear question, with all that is needed to answer it.
        choices: The possible answers, if there are only a few.
    """
    return answer.value


@tool(effect=Effect.READ)
def calculator(expression: str) -> int | float:
    """Work out an arithmetic expression exactly.

    Args:
        expression: Such as `(2 + 3) * 1.19`; with abs, ceil, exp, floor, log, max, min, round, sqrt, pi, e.
    """
    return calculate(expression)


@tool(effect=Effect.READ)
def current_time(timezone: str = "UTC") -> str:
    """The date and time now, with the day of the week.

    Args:
        timezone: A name such as Europe/Berlin.
    """
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        zone = UTC if timezone == "UTC" else ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(f"timezone {timezone!r} is not known; give a name such as Europe/Berlin") from None
    return datetime.now(zone).strftime("%A, %Y-%m-%dT%H:%M:%S%z")


def http_get(
    allow: Sequence[str],
    *,
    headers: Mapping[str, str] | None = None,
    max_bytes: int = 200_000,
    timeout: float = 20.0,
    allow_private: Sequence[str] = (),
) -> Tool:
    """A tool that reads text from the hosts in `allow`: `example.com`, `*.example.com`, `example.com:8080`.

    Only public addresses are connected to, but for hosts that `allow_private` names as well. `headers` are
    the project's (see `HttpGetSettings`); `timeout` is in seconds. What does not fit raises
    `ToolDefinitionError`. Settings that are stored for an agent do not change this tool; they do change a
    `ToolConfig(HttpGet, ...)`.
    """
    settings: dict[str, object] = {
        "allowed_hosts": list(allow),
        "headers": dict(headers or {}),
        "max_bytes": max_bytes,
        "timeout": timeout,
    }
    return HttpGet(settings, allow_private).as_tool()

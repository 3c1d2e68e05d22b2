"""What commands for missions take: which mission, which agent, and the fields that can be set."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agency.cli import project
from agency.errors import InvalidInput

if TYPE_CHECKING:
    from agency.models import ConfiguredAgent, Mission

Which = Annotated[
    str, typer.Argument(metavar="MISSION", help="A mission's name, or the beginning of its id.")
]
User = Annotated[str | None, typer.Option(help="In whose name; by default the local user's.")]
Loop = Annotated[
    str | None,
    typer.Option(
        "--loop",
        "--loop-prompt",
        metavar="TEXT|@FILE",
        help="How the supervisor is to judge; makes it a loop.",
    ),
]
Most = Annotated[int | None, typer.Option("--max-iterations", metavar="N", help="1 to 100, by default 10.")]
Delay = Annotated[
    int | None, typer.Option("--delay", metavar="SECONDS", help="Between two iterations; 0 to 86400.")
]
Supervisor = Annotated[
    str | None, typer.Option("--supervisor", metavar="MODEL", help="provider:model; else the agent's own.")
]
Checks = Annotated[
    list[str] | None,
    typer.Option(
        "--check",
        metavar="NAME",
        help="A check that must pass before a loop is complete; repeatable, '' for none.",
    ),
]
Limits = Annotated[
    list[str] | None,
    typer.Option("--limit", metavar="NAME=N", help="tokens, cost (US dollars), seconds, …; repeatable."),
]


def find_mission(text: str) -> "Mission":
    """The mission of this name, or the one whose id begins so; `InvalidInput` if there is none, or two."""
    from agency.models import Mission

    rows = Mission.objects.select_related("agent", "owner")
    named = list(rows.filter(name=text, archived_at__isnull=True)[:2])
    if len(named) == 1:
        return named[0]
    if named:
        raise InvalidInput(f"More than one mission is named {text!r}. `agency mission list` shows their ids.")
    if set(text.replace("-", "").lower()) - set("0123456789abcdef"):
        raise InvalidInput(f"There is no mission named {text!r}. `agency mission list` shows what there is.")
    return project.by_prefix(rows, text, "mission", "agency mission list")


def chosen_agent(owner: Any, text: str | None) -> "ConfiguredAgent":
    """The owner's agent of this name, or one of this type; without a text, of the only type."""
    from agency.execution.agents import agent_for, registered_keys
    from agency.models import ConfiguredAgent

    keys = registered_keys()
    if text is None:
        if len(keys) != 1:
            known = ", ".join(keys) or "none: is your app in AGENCY_APPS?"
            raise InvalidInput(f"Say which agent, with --agent. There are these types: {known}.")
        return agent_for(owner, keys[0])
    named = ConfiguredAgent.objects.filter(owner=owner, name=text).first()
    if named is not None:
        return named
    if text in keys:
        return agent_for(owner, text)
    names = sorted(ConfiguredAgent.objects.filter(owner=owner).values_list("name", flat=True))
    known = f"Agents: {', '.join(names) or 'none'}; types: {', '.join(keys) or 'none'}."
    raise InvalidInput(f"There is no agent {text!r}. {known}")


def fields(**given: Any) -> dict[str, Any]:
    """Options as fields of a mission; what was left out is not among them."""
    read = {
        "name": ("name", str),
        "prompt": ("prompt", _text),
        "loop": ("loop_prompt", _text),
        "most": ("max_iterations", int),
        "delay": ("loop_delay_seconds", int),
        "supervisor": ("supervisor_model", str),
        "check": ("completion_checks", _checks),
        "limit": ("limits", _limits),
    }
    return {read[name][0]: read[name][1](value) for name, value in given.items() if value is not None}


def _text(value: str) -> str:
    if not value.startswith("@"):
        return value
    if value == "@-":
        return sys.stdin.read()
    try:
        return Path(value[1:]).read_text(encoding="utf-8")
    except OSError as exc:
        raise InvalidInput(f"{exc.strerror}: {value[1:]}") from exc
    except UnicodeDecodeError as exc:
        raise InvalidInput(f"{value[1:]} is not UTF-8 text: {exc.reason}.") from exc


def _checks(values: list[str]) -> list[str]:
    return [name for name in values if name]


def _limits(values: list[str]) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    for value in values:
        name, _, number = value.partition("=")
        try:
            limits[name.strip()] = json.loads(number)
        except ValueError as exc:
            raise InvalidInput(f"--limit {value!r} is no NAME=NUMBER, such as tokens=50000.") from exc
    return limits

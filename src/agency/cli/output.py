"""How the command line speaks: tables and colour for people, JSON for programs, errors on stderr."""

import json
import shlex
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from agency.enums import ExecutionStatus

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

LOOK = {
    ExecutionStatus.PENDING: ("○", "dim"),
    ExecutionStatus.IN_PROGRESS: ("◐", "cyan"),
    ExecutionStatus.INTERRUPTED: ("‖", "yellow"),
    ExecutionStatus.FINISHED: ("✓", "green"),
    ExecutionStatus.FAILED: ("✗", "red"),
    ExecutionStatus.CANCELLED: ("⊘", "dim"),
}


WIDE = 200


def console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """Plain and wide where it is no terminal, so that nothing is cut in a log or a pipe."""
    made = Console(stderr=stderr, quiet=quiet, highlight=False)
    if not made.is_terminal:
        made.width = WIDE
    return made


def print_json(value: Any) -> None:
    json.dump(value, sys.stdout, ensure_ascii=False, indent=2, default=_jsonable)
    sys.stdout.write("\n")


def _jsonable(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def note(message: str) -> None:
    """A remark for people on stderr, so that stdout stays usable in a pipe."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(escape(message), style="dim")


def complain(message: str, errors: Sequence[dict[str, str]] = (), code: int = 1) -> int:
    """Say on stderr what is wrong, with the path of each faulty value; gives the exit code back."""
    err = Console(stderr=True, highlight=False, soft_wrap=True)
    sentence = message[:1].upper() + message[1:] if message.split(" ")[0].isalpha() else message
    err.print(f"[bold red]Error:[/] {escape(sentence)}")
    for error in errors[:20]:
        if error["message"] not in message:
            err.print(f"  [bold]{escape(error['path'])}[/]: {escape(error['message'])}")
    return code


def status_text(status: str) -> Text:
    icon, style = LOOK[ExecutionStatus(status)]
    return Text(f"{icon} {status.replace('_', ' ')}", style=style)


def short(execution_id: object) -> str:
    """Enough of an id to tell executions apart; commands accept it."""
    return str(execution_id)[:8]


def seconds_between(start: datetime | None, end: datetime | None) -> float | None:
    return (end - start).total_seconds() if start and end else None


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def ago(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"


def tokens_of(usage: dict[str, Any]) -> int:
    return int(usage.get("input_tokens") or 0) + int(usage.get("output_tokens") or 0)


def plain(text: str) -> str:
    """The text without what would steer a terminal."""
    return "".join(one if one.isprintable() or one == "\n" else "\ufffd" for one in text)


def argument(text: str) -> str:
    """The text as one argument of a command that people copy, whatever a model has put into it."""
    return shlex.quote(plain(text))

"""Follows executions to their end: a live table on a terminal, one line per change elsewhere."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from agency.cli.output import duration, short, status_text
from agency.enums import ExecutionStatus

LOOK_EVERY = 1.0
"""Seconds; each look costs the service a request or two, and a local model needs the processor more."""
STOPPED = {
    ExecutionStatus.FINISHED,
    ExecutionStatus.FAILED,
    ExecutionStatus.CANCELLED,
    ExecutionStatus.INTERRUPTED,
}


@dataclass(frozen=True)
class Line:
    """One execution as it stands. `attempt` counts from 1, `doing` is what it does, `took` is in seconds."""

    id: str
    label: str
    status: str
    attempt: int = 0
    doing: str = ""
    tokens: int = 0
    took: float | None = None

    @property
    def has_stopped(self) -> bool:
        return ExecutionStatus(self.status) in STOPPED


def follow(console: Console, look: Callable[[], Sequence[Line]]) -> Sequence[Line]:
    """Show what `look` sees until every execution has ended or waits for a person; gives the last look."""
    if console.is_terminal:
        return _live(console, look)
    return _lines(console, look)


def _live(console: Console, look: Callable[[], Sequence[Line]]) -> Sequence[Line]:
    spinner = Spinner("dots", style="cyan")
    lines = look()
    with Live(_table(lines, spinner), console=console, refresh_per_second=8) as live:
        while not all(line.has_stopped for line in lines):
            time.sleep(LOOK_EVERY)
            lines = look()
            live.update(_table(lines, spinner))
    return lines


def _lines(console: Console, look: Callable[[], Sequence[Line]]) -> Sequence[Line]:
    seen: dict[str, Line] = {}
    while True:
        lines = look()
        for line in lines:
            known = replace(line, doing="", tokens=0, took=None)
            if seen.get(line.id) != known:
                seen[line.id] = known
                console.print(_said(line), soft_wrap=True)
        if all(line.has_stopped for line in lines):
            return lines
        time.sleep(LOOK_EVERY)


def _said(line: Line) -> Text:
    text = Text.assemble((short(line.id), "dim"), "  ", line.label, "  ", status_text(line.status))
    if line.attempt and not line.has_stopped:
        text.append(f", attempt {line.attempt}")
    if line.has_stopped:
        text.append(f" in {duration(line.took)}, {line.tokens:,} tokens, attempts: {line.attempt}")
    return text


def _table(lines: Sequence[Line], spinner: Spinner) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", expand=False)
    table.add_column("")
    table.add_column("execution", style="dim", no_wrap=True)
    table.add_column("what", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("attempt", justify="right")
    table.add_column("tokens", justify="right")
    table.add_column("took", justify="right", min_width=8)
    table.add_column("now", overflow="ellipsis", no_wrap=True, style="dim")
    for line in lines:
        running = line.status == ExecutionStatus.IN_PROGRESS
        table.add_row(
            spinner if running else "",
            short(line.id),
            line.label,
            status_text(line.status),
            str(line.attempt or ""),
            f"{line.tokens:,}" if line.tokens else "",
            duration(line.took) if line.took is not None else "",
            line.doing,
        )
    return table

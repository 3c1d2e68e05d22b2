"""A mission's execution as a person reads it: where its loop stands, one card for each iteration, the end.

Takes what the API shows (dicts), so that rows of this database and of a service elsewhere look the same.
"""

from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from agency.cli.output import argument, duration, plain, short, status_text, tokens_of
from agency.enums import ExecutionStatus, LoopStatus, Verdict

LOOP_LOOK = {
    LoopStatus.RUNNING: ("◐", "cyan"),
    LoopStatus.WAITING: ("◷", "blue"),
    LoopStatus.BLOCKED: ("‖", "yellow"),
    LoopStatus.COMPLETED: ("✓", "green"),
    LoopStatus.FAILED: ("✗", "red"),
    LoopStatus.CANCELLED: ("⊘", "dim"),
    LoopStatus.LIMIT_REACHED: ("▲", "yellow"),
}
CHIPS = {
    Verdict.CONTINUE: ("↻", "cyan"),
    Verdict.COMPLETE: ("✓", "green"),
    Verdict.PASSED: ("✓", "green"),
    Verdict.WAIT: ("◷", "blue"),
    Verdict.BLOCKED: ("‖", "yellow"),
    Verdict.RETRY: ("↻", "yellow"),
    Verdict.FAILED: ("✗", "red"),
    Verdict.CANCELLED: ("⊘", "dim"),
}
BAR = 12
LONGEST = 400
"""Characters of one value on a card; `agency trace` shows it whole."""


def state_text(row: dict[str, Any]) -> Text:
    """Where an execution stands; of a loop, what its loop is at, unless it waits for a person."""
    loop = row["loop_status"]
    if loop is None or (loop == LoopStatus.RUNNING and row["status"] != ExecutionStatus.IN_PROGRESS):
        return status_text(row["status"])
    icon, style = LOOP_LOOK[LoopStatus(loop)]
    return Text(f"{icon} {loop.replace('_', ' ')}", style=style)


def progress_text(row: dict[str, Any]) -> Text:
    """`3/10` with a bar; of a mission that is no loop, nothing."""
    most = row["max_iterations"]
    if not most:
        return Text()
    done = min(round(row["iteration"] / most * BAR), BAR)
    bar = [("━" * done, LOOP_LOOK[LoopStatus(row["loop_status"])][1]), ("─" * (BAR - done), "bright_black")]
    return Text.assemble("loop ", *bar, f" {row['current_iteration']}/{most}")


def cost_text(usage: dict[str, Any]) -> str:
    """Tokens, and money where the price is known."""
    cost = usage.get("cost")
    return f"{tokens_of(usage):,} tokens{f' · ${cost:.4f}' if cost else ''}"


def headline(row: dict[str, Any], spent: dict[str, Any]) -> Text:
    """One line: which mission, where it stands, how far it is, what it has cost."""
    name = row["mission_name"] or row["execution_key"]
    parts = [Text(_line(name), style="bold"), state_text(row), progress_text(row), Text(cost_text(spent))]
    if row["started_at"]:
        end = row["finished_at"] or datetime.now(UTC).isoformat()
        parts.append(Text(duration(seconds(row["started_at"], end))))
    return Text("  ").join([Text(short(row["id"]), style="dim"), *(part for part in parts if part)])


def card(iteration: dict[str, Any], most: int | None, *, is_plain: bool = False) -> RenderableType:
    """An iteration: what it began with, what was done, how that was judged, and what follows."""
    icon, style = CHIPS[Verdict(iteration["verdict"])]
    took = duration(seconds(iteration["started_at"], iteration["finished_at"]))
    of = f" of {most}" if most else ""
    chip = (f"{icon} {iteration['verdict']}", style)
    cost = f"{cost_text(iteration['usage'])} · {took}"
    if is_plain:
        return Group(
            Text.assemble(f"iteration {iteration['n']}{of}: ", chip, f"  ({cost})"), _facts(iteration)
        )
    title = Text.assemble((f"iteration {iteration['n']}{of}", "bold"), "  ", chip)
    return Panel(
        _facts(iteration),
        title=title,
        title_align="left",
        subtitle=Text(cost, style="dim"),
        subtitle_align="right",
        border_style=style,
    )


def _facts(iteration: dict[str, Any]) -> Table:
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True, min_width=9)
    facts.add_column(overflow="fold")
    wait, asked = iteration["wait"], iteration["required_input"]
    lines = (
        ("  input", iteration["input"]),
        ("  did", iteration["answer"]),
        ("  summary", iteration["summary"] if iteration["summary"] != iteration["answer"] else ""),
        ("  reason", iteration["reason"]),
        ("  evidence", iteration["evidence"]),
        ("  next", iteration["next_input"]),
        ("  waits for", wait and _wait_of(wait)),
        ("  asks", asked and asked["question"]),
        ("  failure", iteration["failure_code"]),
    )
    for name, value in lines:
        if value:
            facts.add_row(name, Text(shown(value)))
    return facts


def waits_for(row: dict[str, Any]) -> str:
    """What keeps an execution from going on now, in a sentence; empty if nothing does."""
    if row["held"]:
        return f"held: {row['held']['reason']}"
    if row["wait"]:
        wait, until = row["wait"], _moment(row["wait"]["until"])
        if wait["kind"] in {"seconds", "until"}:
            return f"waits until {until}{_what_for(wait)}"
        return f"waits for {_wait_of(wait)} (at most until {until})"
    if row["request"]:
        return f"asks: {row['request']['message']}"
    if row["next_run_at"] is None:
        return ""
    if datetime.fromisoformat(row["next_run_at"]) <= datetime.now(UTC):
        return "waits for a free worker"
    return f"goes on at {_moment(row['next_run_at'])}"


def next_step(row: dict[str, Any]) -> str:
    """The command that goes on from here; empty where there is none."""
    me = short(row["id"])
    if row["request"]:
        return f"agency inbox answer {short(row['request']['id'])}"
    if row["wait"]:
        named = row["wait"]["name"] if row["wait"]["kind"] == "signal" else None
        sent = f"agency mission signal {me} {argument(named)} sends it, " if named else ""
        return f"{sent}agency mission resume {me} goes on without it"
    if row["loop_status"] == LoopStatus.LIMIT_REACHED:
        return f"agency mission extend {me} 5 grants five iterations more"
    return ""


def ending(row: dict[str, Any]) -> Text:
    """What came of an execution, in one paragraph."""
    decided: dict[str, Any] = row["loop_decision"] or {}
    code = row["failure_code"] if row["failure_code"] != row["loop_status"] else None
    why = ": ".join(part for part in (code, row["failure_summary"]) if part)
    said = why or decided.get("summary") or ""
    return Text.assemble(state_text(row), f" – {shown(said)}" if said else "")


def shown(value: Any) -> str:
    """A text on a few lines, without what would steer a terminal."""
    text = plain(str(value).strip())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text):,} characters)"


def seconds(start: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def _line(text: str) -> str:
    return " ".join(shown(text).split())


def _wait_of(wait: dict[str, Any]) -> str:
    """From a decision or from the row: they name what is waited for in two ways."""
    kind = wait.get("kind") or next(
        (one for one in ("seconds", "until", "signal", "watch") if wait.get(one) is not None), ""
    )
    named = wait.get("name") or wait.get(kind)
    by = {
        "seconds": f"{duration(float(wait['seconds']))}" if wait.get("seconds") else "a time",
        "until": f"{_moment(wait['until'])}" if wait.get("until") else "a time",
    }.get(kind, f"the {kind} {named}")
    return f"{by}{_what_for(wait)}"


def _what_for(wait: dict[str, Any]) -> str:
    return f": {_line(wait['what_for'])}" if wait.get("what_for") else ""


def _moment(text: str) -> str:
    return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"

"""`agency watch`: follows one execution live, iteration by iteration, until it ends."""

import json
import os
import sys
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from agency.agent.events import Usage
from agency.cli import project, story
from agency.cli.output import console, note
from agency.cli.sources import Patient, Rows, Source
from agency.enums import ExecutionStatus, LoopStatus
from agency.errors import InvalidInput

LOOK_EVERY = 0.5
LOOK_BACK = 300
"""Events before the newest one that are read to say what is being done just now."""
Id = Annotated[str, typer.Argument(metavar="ID", help="An execution's id, or its beginning.")]


class Until(StrEnum):
    """When to stop looking: at the end, or also when nothing goes on without a person, signal or time."""

    END = "end"
    WAITS = "waits"


def watch(
    execution_id: Id,
    until: Annotated[Until, typer.Option(help="Stop at the end, or also while it waits.")] = Until.END,
    url: Annotated[
        str | None,
        typer.Option(help="A service elsewhere, such as http://host:8765; AGENCY_TOKEN holds its token."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a line: events, iterations, the end.")
    ] = False,
) -> None:
    """Follow an execution: its loop, a card for each iteration, decisions, cost. Ctrl-C only stops looking.

    Exit code 0 if it finishes (or waits, with `--until waits`), 1 if it ends otherwise.
    """
    source, name = _source(execution_id, url)
    if url is None and not as_json and not project.service_is_up():
        note(
            "No service runs in this home: unless workers run elsewhere, nothing goes on before `agency up`."
        )
    row = follow(source, name, until, as_json=as_json)
    done = row["status"] == ExecutionStatus.FINISHED or row["finished_at"] is None
    raise typer.Exit(0 if done else 1)


def _source(execution_id: str, url: str | None) -> tuple[Source, str]:
    if url is None:
        project.setup()
        return Rows(), str(project.find_execution(execution_id).pk)
    from agency.cli.client import Client

    token = os.environ.get("AGENCY_TOKEN", "")
    if not token:
        raise InvalidInput("AGENCY_TOKEN is not set: `agency token create NAME` there makes a token.")
    return Patient(Client(url.rstrip("/"), token)), execution_id


def follow(
    source: Source,
    execution_id: str,
    until: Until,
    *,
    as_json: bool = False,
    out: Console | None = None,
) -> dict[str, Any]:
    """Show the execution until it ends (or waits); returns it as it is then."""
    seen = Seen(source, execution_id, since_begin=as_json)
    if as_json:
        return _json_lines(seen, until)
    out = out or console()
    return _live(seen, until, out) if out.is_terminal else _lines(seen, until, out)


@dataclass
class Seen:
    """What has been read of an execution so far: its row, its iterations, its newest events."""

    source: Source
    execution_id: str
    since_begin: bool = False
    row: dict[str, Any] = field(default_factory=dict[str, Any])
    doing: str = ""
    iterations: int = 0
    _after: int | None = None
    _now: dict[int, Usage] = field(default_factory=dict[int, Usage])

    def look(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Read on: the events and iterations that have come since the last look."""
        self.row = self.source.execution(self.execution_id)
        if self._after is None:
            self._after = 0 if self.since_begin else max(self.row["event_seq"] - LOOK_BACK, 0)
        events: list[dict[str, Any]] = []
        while self._after < self.row["event_seq"]:
            page = self.source.events(self.execution_id, self._after)
            if not page["items"]:
                break
            events += page["items"]
            self._after = page["after"]
        for event in events:
            self._note(event)
        return events, self._iterations()

    def has_stopped(self, until: Until) -> bool:
        if self.row["finished_at"] is not None:
            return True
        waits = (
            self.row["status"] == ExecutionStatus.INTERRUPTED or self.row["loop_status"] == LoopStatus.WAITING
        )
        return until is Until.WAITS and waits

    @property
    def spent(self) -> dict[str, Any]:
        """What is on the row, and what the iteration that is worked on has cost so far."""
        now = self._now.get(self.row["iteration"] + 1, Usage())
        return (Usage.model_validate(self.row["usage"]) + now).model_dump()

    def _iterations(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while self.iterations < self.row["iteration"]:
            page = self.source.iterations(self.execution_id, self.iterations)
            if not page["items"]:
                break
            found += page["items"]
            self.iterations = page["after"]
        return found

    def _note(self, event: dict[str, Any]) -> None:
        if event["usage"]:
            now = self._now.setdefault(event["iteration"], Usage())
            self._now[event["iteration"]] = now + Usage.model_validate(event["usage"])
        if event["content"]:
            self.doing = _said(event["content"][-1]) or self.doing
        elif event["error"]:
            self.doing = f"{event['error'].get('code')}: {event['error'].get('message')}"


def _said(content: dict[str, Any]) -> str:
    if content["type"] == "tool_call":
        return f"calls {content['name']}({json.dumps(content['arguments'], ensure_ascii=False)})"
    if content["type"] == "tool_result":
        return f"{content['name']} gave {content['content']}"
    return "reads its task" if content.get("role") == "user" else str(content.get("content", ""))


def _json_lines(seen: Seen, until: Until) -> dict[str, Any]:
    while True:
        events, iterations = seen.look()
        for kind, items in (("event", events), ("iteration", iterations)):
            for item in items:
                _print_line({kind: item})
        if seen.has_stopped(until):
            _print_line({"execution": seen.row})
            return seen.row
        time.sleep(LOOK_EVERY)


def _print_line(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def _lines(seen: Seen, until: Until, out: Console) -> dict[str, Any]:
    """Where it is no terminal: each card, and a line whenever the state is another."""
    before = ""
    while True:
        _, iterations = seen.look()
        for iteration in iterations:
            out.print(story.card(iteration, seen.row["max_iterations"], is_plain=True))
        now = f"{story.state_text(seen.row)}{_rest(seen.row)}"
        if now != before and not seen.row["finished_at"]:
            out.print(Text(now), soft_wrap=True)
            before = now
        if seen.has_stopped(until):
            return _end(seen, out)
        time.sleep(LOOK_EVERY)


def _live(seen: Seen, until: Until, out: Console) -> dict[str, Any]:
    spinner = Spinner("dots", style="cyan")
    with Live(console=out, refresh_per_second=8) as live:
        while True:
            _, iterations = seen.look()
            for iteration in iterations:
                live.console.print(story.card(iteration, seen.row["max_iterations"]))
            if seen.has_stopped(until):
                live.update(Text())
                break
            live.update(_now(seen, spinner), refresh=True)
            time.sleep(LOOK_EVERY)
    return _end(seen, out)


def _now(seen: Seen, spinner: Spinner) -> Group:
    """The headline, and below it what keeps the run, or what it does."""
    kept = story.waits_for(seen.row)
    if kept:
        step = story.next_step(seen.row)
        below = Text.assemble((f"  {story.shown(kept)}", "yellow"), f"\n  → {step}" if step else "")
    else:
        said = " ".join(story.shown(seen.doing).split())
        below = Text(f"  {said}", style="dim", overflow="ellipsis", no_wrap=True)
        spinner.update(text=below)
        return Group(story.headline(seen.row, seen.spent), spinner)
    return Group(story.headline(seen.row, seen.spent), below)


def _rest(row: dict[str, Any]) -> str:
    kept, step = story.waits_for(row), story.next_step(row)
    return f" – {' '.join(story.shown(kept).split())}{f' → {step}' if step else ''}" if kept else ""


def _end(seen: Seen, out: Console) -> dict[str, Any]:
    row = seen.row
    out.print(story.headline(row, row["usage"] if row["finished_at"] else seen.spent), soft_wrap=True)
    if row["finished_at"]:
        out.print(story.ending(row))
        if row["output"] is not None:
            out.print_json(json.dumps(row["output"]), ensure_ascii=False)
    elif rest := _rest(row):
        out.print(Text(rest.removeprefix(" – ")), soft_wrap=True)
    step = story.next_step(row) if row["finished_at"] else ""
    story_of = f"agency trace {story.short(row['id'])} tells the whole story"
    out.print(Text(f"→ {step or story_of}", style="dim"))
    return row

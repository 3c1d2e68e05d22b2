"""Commands that look at executions: `list`, `show`, `trace`, and `cancel`."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.json import JSON
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agency.cli import loops, project, story
from agency.cli.mission_options import find_mission
from agency.cli.output import (
    AsJson,
    console,
    duration,
    print_json,
    seconds_between,
    short,
    status_text,
    tokens_of,
)
from agency.cli.sources import Rows
from agency.enums import ExecutionStatus

if TYPE_CHECKING:
    from agency.models import Execution

Id = Annotated[str, typer.Argument(metavar="ID", help="An execution's id, or its beginning.")]


def list_executions(
    status: Annotated[ExecutionStatus | None, typer.Option(help="Only those that stand so.")] = None,
    key: Annotated[str | None, typer.Option(help="Only those of this execution type.")] = None,
    mission: Annotated[str | None, typer.Option(help="Only those of this mission, by name or id.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List executions, newest first."""
    project.setup()
    from agency.models import Execution
    from agency.models.event import with_event_seq

    wanted: dict[str, Any] = {"status": status, "execution_key": key}
    if mission is not None:
        wanted["mission"] = find_mission(mission)
    rows = with_event_seq(Execution.objects.select_related("agent")).order_by("-created_at", "-id")
    rows = list(rows.filter(**{name: value for name, value in wanted.items() if value})[:limit])
    if as_json:
        from agency.api.schemas import ExecutionRow

        print_json([ExecutionRow.of(row).model_dump(mode="json") for row in rows])
    elif rows:
        console().print(loops.table(rows))
    elif narrowed := {name: value for name, value in wanted.items() if value}:
        said = " and ".join(f"{name} {value}" for name, value in narrowed.items())
        console().print(Text(f"No execution has {said.replace('execution_key', 'type')}."))
    else:
        console().print(
            "No executions yet. `agency run KEY --input FILE` starts one, `agency mission dispatch` one of a "
            "mission, `agency demo` shows several."
        )


def show(execution_id: Id, as_json: AsJson = False) -> None:
    """Show one execution: input, output, attempts, what it cost."""
    project.setup()
    execution = project.find_execution(execution_id)
    if as_json:
        from agency.api.schemas import ExecutionOut

        print_json(ExecutionOut.of(execution).model_dump(mode="json"))
        return
    out = console()
    out.print(_facts(execution))
    given = execution.input if execution.mission_id is None else None
    for title, value in (("input", given), ("output", execution.output)):
        if value is not None:
            out.print(Text(f"\n{title}", style="bold"))
            out.print(Padding(JSON.from_data(value, ensure_ascii=False), (0, 2), expand=False))
    if execution.mission_id is not None:
        _tell(execution)
    elif attempts := list(execution.iterations.order_by("n")):
        out.print()
        out.print(_attempts(attempts))
    out.print(f"\nThe whole story: agency trace {short(execution.id)}", style="dim")


def _facts(row: "Execution") -> Table:
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold")
    facts.add_column()
    usage = row.usage
    lines: list[tuple[str, Any]] = [
        ("id", str(row.id)),
        ("status", loops.state_of(row)),
        ("type", row.execution_key),
        ("mission", "" if row.mission_id is None else loops.order_of(row)),
        ("iterations", "" if row.max_iterations is None else loops.count_of(row)),
        ("agent", row.agent.name),
        ("why", ": ".join(part for part in (row.failure_code, row.failure_summary) if part)),
        ("held", "" if row.is_terminal else (row.metadata.get("held") or {}).get("reason", "")),
        ("created", f"{row.created_at:%Y-%m-%d %H:%M:%S %Z}"),
        ("took", duration(seconds_between(row.started_at, row.finished_at))),
        ("calls", f"{usage.get('model_calls', 0)} to the model, {usage.get('tool_calls', 0)} to tools"),
        ("tokens", f"{usage.get('input_tokens', 0):,} in, {usage.get('output_tokens', 0):,} out"),
    ]
    for name, value in lines:
        if value:
            facts.add_row(name, value if isinstance(value, Text) else Text(str(value)))
    return facts


def _tell(row: "Execution") -> None:
    """The iterations of a mission, and what it waits for or could do next."""
    out, source = console(), Rows()
    for iteration in source.iterations(str(row.pk), 0)["items"]:
        out.print()
        out.print(story.card(iteration, row.max_iterations, is_plain=not out.is_terminal))
    shown = source.execution(str(row.pk))
    for text in (story.waits_for(shown), story.next_step(shown)):
        if text:
            out.print(Text(f"\n{text}"), soft_wrap=True)


def _attempts(attempts: list[Any]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("attempt", justify="right")
    table.add_column("verdict")
    table.add_column("tokens", justify="right")
    table.add_column("took", justify="right")
    table.add_column("what was said")
    for row in attempts:
        table.add_row(
            str(row.n),
            row.verdict,
            f"{tokens_of(row.usage):,}",
            duration(seconds_between(row.started_at, row.finished_at)),
            Text(row.feedback or row.summary),
        )
    return table


def trace(execution_id: Id, as_json: AsJson = False) -> None:
    """Print what happened in an execution, step by step."""
    project.setup()
    execution = project.find_execution(execution_id)
    if as_json:
        from agency.api.schemas import EventOut

        print_json([EventOut.of(row).model_dump(mode="json") for row in execution.events.order_by("seq")])
        return
    from agency.api.trace import execution_trace

    execution_trace(execution, file=sys.stdout)


def cancel(execution_id: Id, as_json: AsJson = False) -> None:
    """Cancel an execution; one that has ended stays as it is."""
    project.setup()
    from agency.execution import service

    execution = project.find_execution(execution_id)
    service.request_cancel(execution)
    execution.refresh_from_db()
    if as_json:
        print_json({"id": str(execution.id), "status": execution.status})
    elif execution.is_terminal:
        console().print(f"{short(execution.id)}: ", status_text(execution.status), sep="")
    else:
        console().print(f"{short(execution.id)} is asked to stop; its worker stops it within moments.")

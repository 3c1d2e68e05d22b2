"""Commands for missions: `mission create`, `list`, `show`, `change`, `remove`, `dispatch`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agency.cli import executions, loops, project, schedules
from agency.cli.app import App
from agency.cli.mission_options import (
    Checks,
    Delay,
    Limits,
    Loop,
    Most,
    Supervisor,
    User,
    Which,
    chosen_agent,
    fields,
    find_mission,
)
from agency.cli.output import AsJson, ago, console, note, print_json, short
from agency.cli.sources import Rows
from agency.cli.watch import Until, follow
from agency.errors import AgencyError, InvalidInput

if TYPE_CHECKING:
    from agency.models import Mission

app = App(help="Missions: standing orders in words, once or in a loop.")
app.add_typer(schedules.app, name="schedule")
for name, command in (
    ("cancel", executions.cancel),
    ("extend", loops.extend),
    ("resume", loops.resume),
    ("signal", loops.signal),
    ("ask-again", loops.ask_again),
):
    app.command(name)(command)


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the mission is called.")],
    prompt: Annotated[
        str, typer.Option(metavar="TEXT|@FILE", help="The objective; @FILE reads it, @- reads stdin.")
    ],
    agent: Annotated[
        str | None, typer.Option(help="An agent's name or type; may be left out if there is one type.")
    ] = None,
    loop: Loop = None,
    most: Most = None,
    delay: Delay = None,
    supervisor: Supervisor = None,
    check: Checks = None,
    limit: Limits = None,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """Create a mission. Nothing runs before it is dispatched, or by a schedule."""
    given = fields(
        prompt=prompt, loop=loop, most=most, delay=delay, supervisor=supervisor, check=check, limit=limit
    )
    project.setup()
    from agency.mission import missions

    owner = project.user_named(user)
    mission = missions.create(owner, agent=chosen_agent(owner, agent), name=name, **given)
    mission.refresh_from_db()
    if as_json:
        print_json(_shown(mission))
        return
    kind = f"a loop of at most {mission.max_iterations} iterations" if mission.is_loop else "one-shot"
    console().print(Text(f"Created {mission.name} ({short(mission.pk)}), {kind}."))
    note(f"agency mission dispatch {short(mission.pk)} starts it.")


@app.command("list")
def list_missions(
    archived: Annotated[bool, typer.Option("--archived", help="Those that were removed instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """List missions, newest first."""
    project.setup()
    from agency.models import Mission

    found = Mission.objects.filter(archived_at__isnull=not archived).select_related("agent")
    rows = list(found.order_by("-created_at", "-id"))
    if as_json:
        print_json([_shown(row) for row in rows])
    elif rows:
        console().print(_table(rows))
    elif archived:
        console().print("No mission was removed.")
    else:
        console().print("No missions yet. `agency mission create NAME --prompt TEXT` makes one.")


def _table(rows: "list[Mission]") -> Table:
    from agency.models.clock import database_now

    now = database_now()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("id", "name", "agent", "mode", "next dispatch", "last execution"):
        table.add_column(column, no_wrap=column == "id")
    for row in rows:
        times = row.schedules.filter(next_slot_at__isnull=False).order_by("next_slot_at")
        next_at = times.values_list("next_slot_at", flat=True).first()
        last = row.executions.order_by("-created_at", "-id").first()
        table.add_row(
            short(row.pk),
            Text(row.name),
            Text(row.agent.name),
            f"loop ≤ {row.max_iterations}" if row.is_loop else "once",
            f"{next_at:%Y-%m-%d %H:%M %Z}" if next_at else "–",
            Text("–")
            if last is None
            else Text.assemble(
                f"{short(last.pk)} ", loops.state_of(last), f" {ago((now - last.created_at).total_seconds())}"
            ),
        )
    return table


@app.command("show")
def show(which: Which, as_json: AsJson = False) -> None:
    """Show a mission: what it is told, its limits, its schedules, its last executions."""
    project.setup()
    mission = find_mission(which)
    if as_json:
        print_json(
            {
                **_shown(mission),
                "schedules": [schedules.shown(row) for row in mission.schedules.order_by("created_at", "id")],
            }
        )
        return
    out = console()
    out.print(_facts(mission))
    for title, text in (("prompt", mission.prompt), ("loop prompt", mission.loop_prompt)):
        if text:
            out.print(Text(f"\n{title}", style="bold"))
            out.print(Padding(Text(text), (0, 2), expand=False))
    if rows := list(mission.schedules.order_by("created_at", "id")):
        out.print(Text("\nschedules", style="bold"))
        out.print(schedules.table(rows, is_narrow=out.is_terminal))
    if last := list(mission.executions.select_related("agent").order_by("-created_at", "-id")[:5]):
        out.print(Text("\nlast executions", style="bold"))
        out.print(loops.table(last))


def _facts(row: "Mission") -> Table:
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold")
    facts.add_column()
    pause = f", {row.loop_delay_seconds} s between two" if row.loop_delay_seconds else ""
    for label, value in (
        ("id", str(row.pk)),
        ("name", row.name),
        ("agent", row.agent.name),
        ("mode", f"loop of at most {row.max_iterations} iterations{pause}" if row.is_loop else "one-shot"),
        ("supervisor", row.supervisor_model or ("the agent's model" if row.is_loop else "")),
        ("checks", ", ".join(row.completion_checks)),
        ("limits", ", ".join(f"{name} {value:,}" for name, value in row.limits.items())),
        ("asks not for", ", ".join(sorted(tool for tool, holds in row.always_allow.items() if holds))),
        ("removed", f"{row.archived_at:%Y-%m-%d %H:%M:%S %Z}" if row.archived_at else ""),
    ):
        if value:
            facts.add_row(label, Text(value))
    return facts


@app.command("change")
def change(
    which: Which,
    name: Annotated[str | None, typer.Option(help="Another name.")] = None,
    prompt: Annotated[str | None, typer.Option(metavar="TEXT|@FILE", help="Another objective.")] = None,
    agent: Annotated[str | None, typer.Option(help="Another agent, by name or type.")] = None,
    loop: Loop = None,
    most: Most = None,
    delay: Delay = None,
    supervisor: Supervisor = None,
    check: Checks = None,
    limit: Limits = None,
    as_json: AsJson = False,
) -> None:
    """Change a mission for later dispatches; what runs goes on as it was. `--loop ''` makes it one-shot."""
    given = fields(
        name=name,
        prompt=prompt,
        loop=loop,
        most=most,
        delay=delay,
        supervisor=supervisor,
        check=check,
        limit=limit,
    )
    project.setup()
    from agency.mission import missions

    mission = find_mission(which)
    if agent is not None:
        given["agent"] = chosen_agent(mission.owner, agent)
    if not given:
        raise InvalidInput("Say what to change, such as --max-iterations 20.")
    changed = missions.update(mission, **given)
    if changed.refused is not None:
        raise AgencyError(changed.refused)
    if as_json:
        print_json(_shown(changed.mission))
    else:
        console().print(Text(f"{changed.mission.name} is changed, for its next dispatches."))


@app.command("remove")
def remove(which: Which, as_json: AsJson = False) -> None:
    """Remove a mission. Its executions stay and go on; its schedules stop."""
    project.setup()
    from agency.mission import missions

    mission = find_mission(which)
    gone = missions.remove(mission)
    if as_json:
        print_json({"id": str(mission.pk), "archived": not gone})
    else:
        kept = "" if gone else " Its executions stay."
        console().print(Text(f"Removed {mission.name}.{kept}"))


@app.command("dispatch")
def dispatch(
    which: Which,
    key: Annotated[
        str | None, typer.Option("--key", help="An idempotency key: the same one gives the same execution.")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Follow it until it ends or waits.")] = False,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """Start an execution of a mission, as it is now; prints its id. A service or worker runs it."""
    project.setup()
    from agency.mission import service

    submission = service.dispatch(
        find_mission(which), owner=project.user_named(user), idempotency_key=key, trigger={"by": "command"}
    )
    execution = submission.execution
    if not watch:
        if as_json:
            print_json(Rows().execution(str(execution.pk)))
        else:
            typer.echo(str(execution.pk))
            if not submission.created:
                note("The key was used before: this is the execution that it brought.")
            _say_where(str(execution.pk))
        return
    if not as_json:
        _say_where(str(execution.pk))
    row = follow(Rows(), str(execution.pk), Until.WAITS, as_json=as_json)
    raise typer.Exit(0 if row["status"] == "finished" or row["finished_at"] is None else 1)


def _say_where(execution_id: str) -> None:
    served = project.service_is_up()
    runs = "The service here runs it" if served else "No service runs here: `agency up` (or a worker) runs it"
    note(f"{runs}. agency watch {short(execution_id)} follows it.")


def _shown(mission: "Mission") -> dict[str, Any]:
    from agency.api.mission_schemas import MissionOut

    return MissionOut.of(mission).model_dump(mode="json")

"""Commands for the schedules of missions: `mission schedule add`, `list`, `pause`, `resume`, `remove`."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import typer
from rich.table import Table
from rich.text import Text

from agency.cli import project
from agency.cli.app import App
from agency.cli.mission_options import Which, find_mission
from agency.cli.output import AsJson, console, print_json, short
from agency.enums import CatchUp, Overlap

if TYPE_CHECKING:
    from agency.models import Schedule

app = App(help="Dispatch missions by cron: add, list, pause, resume, remove.")
Id = Annotated[str, typer.Argument(metavar="ID", help="A schedule's id, or its beginning.")]


@app.command("add")
def add(
    which: Which,
    cron: Annotated[
        str, typer.Argument(metavar="CRON", help="Five fields in quotes, such as '30 8 * * mon-fri'.")
    ],
    zone: Annotated[str, typer.Option("--zone", help="Whose clock, such as Europe/Berlin.")] = "UTC",
    overlap: Annotated[
        Overlap, typer.Option(help="What a slot does while the execution before still runs.")
    ] = Overlap.SKIP,
    catch_up: Annotated[
        CatchUp, typer.Option(help="What becomes of slots that passed while nothing ran.")
    ] = CatchUp.RUN_ONCE,
    as_json: AsJson = False,
) -> None:
    """Dispatch a mission at the times of a cron expression; shows the next five."""
    project.setup()
    from agency.mission import schedules

    row = schedules.create_schedule(
        find_mission(which), cron=cron, time_zone=zone, overlap=overlap, catch_up=catch_up
    )
    row.refresh_from_db()
    if as_json:
        print_json(shown(row))
        return
    console().print(Text(f"Added {short(row.pk)}: {row.cron} ({row.time_zone}). The next times:"))
    for time in schedules.upcoming(row):
        console().print(f"  {clock(time, row.time_zone)}")


@app.command("list")
def list_schedules(
    which: Annotated[
        str | None, typer.Argument(metavar="[MISSION]", help="Only those of this mission.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List schedules with their next times."""
    project.setup()
    from agency.models import Schedule

    rows = Schedule.objects.select_related("mission").order_by("mission__name", "created_at", "id")
    found = list(rows if which is None else rows.filter(mission=find_mission(which)))
    if as_json:
        print_json([shown(row) for row in found])
    elif found:
        out = console()
        out.print(table(found, is_narrow=out.is_terminal))
    else:
        console().print("No schedules yet. `agency mission schedule add MISSION CRON` makes one.")


@app.command("pause")
def pause(schedule_id: Id, as_json: AsJson = False) -> None:
    """Dispatch nothing by this schedule until it is resumed; what runs goes on."""
    project.setup()
    from agency.mission import schedules

    _say(schedules.pause(find_schedule(schedule_id)), as_json)


@app.command("resume")
def resume(schedule_id: Id, as_json: AsJson = False) -> None:
    """Go on with the first time from now on; what passed meanwhile is not caught up."""
    project.setup()
    from agency.mission import schedules

    _say(schedules.resume(find_schedule(schedule_id)), as_json)


@app.command("remove")
def remove(schedule_id: Id, as_json: AsJson = False) -> None:
    """Remove a schedule; what it has dispatched stays and goes on."""
    project.setup()
    from agency.mission import schedules

    row = find_schedule(schedule_id)
    schedules.delete(row)
    if as_json:
        print_json({"id": str(row.pk), "removed": True})
    else:
        console().print(Text(f"Removed {row.cron} ({row.time_zone}) of {row.mission.name}."))


def find_schedule(prefix: str) -> "Schedule":
    """The one schedule whose id begins with `prefix`."""
    from agency.models import Schedule

    rows = Schedule.objects.select_related("mission")
    return project.by_prefix(rows, prefix, "schedule", "agency mission schedule list")


def _say(row: "Schedule", as_json: bool) -> None:
    if as_json:
        print_json(shown(row))
        return
    state = "is paused" if row.is_paused else "runs"
    at = f", next on {clock(row.next_slot_at, row.time_zone)}" if row.next_slot_at else ""
    console().print(Text(f"{row.cron} ({row.time_zone}) of {row.mission.name} {state}{at}."))


def shown(row: "Schedule") -> dict[str, Any]:
    """A schedule as the API shows it."""
    from agency.api.schedule_schemas import ScheduleOut

    return ScheduleOut.of(row).model_dump(mode="json")


def table(rows: "list[Schedule]", *, is_narrow: bool) -> Table:
    """Schedules with their next five times, as their own clock shows them.

    On a terminal the times stand one below the other; in a pipe a schedule is one line.
    """
    from agency.mission import schedules

    between = "\n" if is_narrow else " "
    made = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("id", "mission", "cron", "state", "overlap", "next times"):
        made.add_column(name, no_wrap=name not in {"mission", "overlap"})
    for row in rows:
        zone = ZoneInfo(row.time_zone)
        times = [f"{time.astimezone(zone):%a %d %b %H:%M}" for time in schedules.upcoming(row)]
        made.add_row(
            short(row.pk),
            Text(row.mission.name),
            Text(f"{row.cron}{between}({row.time_zone})"),
            Text("‖ paused", style="yellow") if row.is_paused else Text("✓ runs", style="green"),
            row.overlap.replace("_", " "),
            "–" if row.is_paused else ("\n" if is_narrow else ", ").join(times),
        )
    return made


def clock(moment: datetime, zone: str) -> str:
    """A moment as the clock of a zone shows it, with the zone's abbreviation."""
    return f"{moment.astimezone(ZoneInfo(zone) if zone else UTC):%a %Y-%m-%d %H:%M %Z}"

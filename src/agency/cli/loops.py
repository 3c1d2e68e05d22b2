"""Commands for missions at work (`extend`, `resume`, `signal`, `ask-again`), and how lists show them."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from agency.cli import project, story
from agency.cli.mission_options import find_mission
from agency.cli.output import AsJson, ago, console, duration, print_json, seconds_between, short, tokens_of
from agency.errors import AgencyError

if TYPE_CHECKING:
    from agency.models import Execution

Id = Annotated[str, typer.Argument(metavar="ID", help="An execution's id, or its beginning.")]
User = Annotated[str | None, typer.Option(help="In whose name; by default the local user's.")]


def extend(
    execution_id: Id,
    iterations: Annotated[int, typer.Argument(metavar="K", help="How many more, 1 to 100.")],
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """Grant more iterations to an execution that has used up its own; it goes on where it was left."""
    project.setup()
    from agency.mission import extending

    done = extending.extend(project.find_execution(execution_id), iterations, project.user_named(user))
    more = f"{iterations} iteration{'' if iterations == 1 else 's'}"
    _say(done.execution, done.refused, f"has {more} more and goes on", as_json)


def resume(execution_id: Id, user: User = None, as_json: AsJson = False) -> None:
    """End an execution's wait, or its pause between two iterations, now."""
    project.setup()
    from agency.mission import waiting

    done = waiting.run_now(project.find_execution(execution_id), project.user_named(user))
    _say(done.execution, done.refused, "goes on now", as_json)


def ask_again(
    mission: Annotated[str, typer.Argument(metavar="MISSION", help="A mission's name or id.")],
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The tool that was always allowed.")],
) -> None:
    """Take back `inbox answer --always --always-for mission`: calls of the tool ask again, at once."""
    project.setup()
    from agency.mission import allowing

    revoked = allowing.revoke(find_mission(mission), tool)
    console().print(f"Calls of {tool} ask again." if revoked else f"Calls of {tool} ask anyway.")


def signal(
    execution_id: Id,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the execution may wait for.")],
    payload: Annotated[
        str | None, typer.Option(metavar="JSON", help="What comes with it: JSON, or else a text.")
    ] = None,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """Send a signal to an execution; without a wait for it, it is kept for the next one."""
    project.setup()
    from agency.mission import signals

    execution = project.find_execution(execution_id)
    sent = signals.send(execution, name, _json_or_text(payload), project.user_named(user))
    execution.refresh_from_db()
    heard = "goes on with it" if sent.ended_wait else "keeps it for the next wait of that name"
    _say(execution, sent.refused, heard, as_json)


def _json_or_text(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text


def _say(execution: "Execution", refused: str | None, done: str, as_json: bool) -> None:
    if refused is not None:
        raise AgencyError(refused)
    if as_json:
        from agency.api.schemas import ExecutionOut

        print_json(ExecutionOut.of(execution).model_dump(mode="json"))
    else:
        console().print(f"{short(execution.pk)} {done}.")


def state_of(row: "Execution") -> Text:
    """Where an execution stands, from its row."""
    return story.state_text({"status": row.status, "loop_status": row.loop_status})


def order_of(row: "Execution") -> str:
    """What an execution runs: the key of a definition, or the name of a mission."""
    mission: dict[str, Any] = row.config.get("mission") or {}
    return row.execution_key or str(mission.get("name") or "mission")


def count_of(row: "Execution") -> str:
    """Committed iterations, of a loop out of how many."""
    return f"{row.iteration}/{row.max_iterations}" if row.max_iterations else str(row.iteration)


def table(rows: "list[Execution]") -> Table:
    """Executions as lists show them."""
    from agency.models.clock import database_now

    now = database_now()
    made = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("id", "status", "what", "agent"):
        made.add_column(name, no_wrap=name == "id")
    for name in ("iterations", "tokens", "took", "created"):
        made.add_column(name, justify="right")
    for row in rows:
        made.add_row(
            short(row.pk),
            state_of(row),
            Text(order_of(row)),
            Text(row.agent.name),
            count_of(row),
            f"{tokens_of(row.usage):,}",
            duration(seconds_between(row.started_at, row.finished_at or now)),
            ago((now - row.created_at).total_seconds()),
        )
    return made

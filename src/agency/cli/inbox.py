"""What waits for people: `agency inbox`, `inbox show`, `inbox answer`."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.json import JSON
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agency.agent.text import as_text
from agency.cli import inbox_answers, project
from agency.cli.app import App
from agency.cli.loops import order_of
from agency.cli.output import AsJson, ago, argument, console, note, plain, print_json, short
from agency.enums import ALLOWED_DECISIONS, AlwaysFor, HumanDecision, HumanRequestKind
from agency.errors import AgencyError

if TYPE_CHECKING:
    from agency.models import HumanRequest, HumanRequestItem

app = App(invoke_without_command=True, help="What waits for a person: list, show, answer.")
Id = Annotated[str, typer.Argument(metavar="ID", help="A request's id, or its beginning.")]


@app.callback()
def inbox(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="How many.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List the open requests, newest first."""
    if context.invoked_subcommand is not None:
        return
    project.setup()
    from agency.human.requests import OPEN
    from agency.models import HumanRequest

    found = HumanRequest.objects.filter(status=OPEN).order_by("-created_at", "-id")
    rows = list(found.select_related("execution__agent")[:limit])
    if as_json:
        from agency.api.human_schemas import HumanRequestOut

        print_json([HumanRequestOut.of(row).model_dump(mode="json") for row in rows])
    elif rows:
        console().print(_table(rows))
    else:
        console().print("Nothing waits for you.")
    more = found.count() - len(rows) if len(rows) == limit else 0
    if more > 0:
        wait = "waits" if more == 1 else "wait"
        note(f"{more:,} more {wait}; --limit N lists more than {limit}.")


def _table(rows: "list[HumanRequest]") -> Table:
    from agency.models.clock import database_now

    now = database_now()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("id", "of", "execution", "asked", "expires", "what is wanted"):
        table.add_column(name, no_wrap=name != "what is wanted")
    for row in rows:
        hours = (row.expires_at - now).total_seconds() / 3600
        left = f"in {hours / 24:.0f} d" if hours >= 48 else f"in {max(hours, 0):.0f} h"
        asked = ago((now - row.created_at).total_seconds())
        of = Text(order_of(row.execution))
        table.add_row(short(row.id), of, short(row.execution_id), asked, left, Text(row.message))
    return table


@app.command("show")
def show(request_id: Id, as_json: AsJson = False) -> None:
    """Show what a request is about and what may be answered."""
    project.setup()
    row = inbox_answers.find_request(request_id)
    if as_json:
        from agency.api.human_schemas import HumanRequestOut

        print_json(HumanRequestOut.of(row).model_dump(mode="json"))
        return
    out = console()
    out.print(Text(row.message, style="bold"))
    out.print(f"{row.kind.replace('_', ' ')}, {row.status}; execution {short(row.execution_id)}", style="dim")
    for item in row.items.order_by("position"):
        describe(item)


def describe(item: "HumanRequestItem") -> None:
    """Print a call or a question, and its decision or what may be decided."""
    out = console()
    if item.tool:
        out.print(Text(plain(f"\n{item.tool}  ({item.call_id})"), style="bold"))
        out.print(Padding(JSON.from_data(item.proposed, ensure_ascii=False), (0, 2), expand=False))
    elif item.decision is None:
        out.print(Text(f"\n  {_wanted(item)}"), soft_wrap=True)
    if item.decision is None:
        choices = ", ".join(ALLOWED_DECISIONS[HumanRequestKind(item.kind)])
        out.print(Text(f"  undecided: {choices}"))
        return
    by = item.decided_by.get_username() if item.decided_by else "nobody"
    said = item.reason or ("" if item.answer is None else as_text(item.answer))
    out.print(Text(plain(f"  {item.decision} by {by}{f': {said}' if said else ''}")))


def _wanted(item: "HumanRequestItem") -> str:
    """The command that answers a question of a mission, with what fits it."""
    schema, more = item.answer_schema, ""
    if choices := schema.get("enum"):
        fits = "|".join(as_text(one) for one in choices)
    elif fields := schema.get("properties"):
        fits = "{" + ", ".join(f'"{name}": N' for name in fields) + "}"
    else:
        fits = "true|false" if schema.get("type") == "boolean" else "TEXT"
    if item.proposed.get("needs_grant"):
        more = " --grant N, since its iterations are used up"
    return f"agency inbox answer {short(item.request_id)} answer --answer {argument(fits)}{more}"


@app.command("answer")
def answer(
    request_id: Id,
    decision: Annotated[
        HumanDecision | None, typer.Argument(help="What to decide; asked for on a terminal if left out.")
    ] = None,
    call: Annotated[str | None, typer.Option(help="Which call; by default all that are undecided.")] = None,
    arguments: Annotated[
        str | None, typer.Option(help="With approve: the arguments to use instead, a JSON object.")
    ] = None,
    value: Annotated[str | None, typer.Option("--answer", help="With answer: text, or JSON.")] = None,
    result: Annotated[
        str | None, typer.Option(help="With happened: what the call gave back, text or JSON.")
    ] = None,
    reason: Annotated[str, typer.Option(help="With reject: the reason, for the model.")] = "",
    always: Annotated[
        bool, typer.Option("--always", help="With approve: ask no more for this tool in this execution.")
    ] = False,
    always_for: Annotated[
        AlwaysFor, typer.Option(help="With --always: in this execution, or in all of its mission.")
    ] = AlwaysFor.EXECUTION,
    grant: Annotated[
        int | None, typer.Option(help="With answer: more iterations, for a mission that has used up its own.")
    ] = None,
    user: Annotated[str | None, typer.Option(help="In whose name; by default the local user's.")] = None,
    as_json: AsJson = False,
) -> None:
    """Answer a request. The execution goes on when all its calls are decided."""
    project.setup()
    from agency.api.human_schemas import HumanRequestOut
    from agency.execution import answering

    row = inbox_answers.find_request(request_id)
    items = inbox_answers.chosen(row, call)
    if decision is None:
        given = [inbox_answers.ask(item, describe) for item in items]
    else:
        said = inbox_answers.Said(decision, arguments, value, result, reason, always, always_for, grant)
        given = [said.about(item) for item in items]
    answered = answering.answer(row.pk, given, project.user_named(user))
    if as_json:
        print_json(HumanRequestOut.of(answered.request).model_dump(mode="json"))
    if answered.refused is not None:
        raise AgencyError(f"{answered.refused} `agency inbox show {short(row.pk)}` shows what is on record.")
    if not as_json:
        console().print(f"{short(row.pk)}: {answered.request.status}, {_what_follows(answered.request)}.")
        if always:
            for tool in sorted({item.tool for item in items}):
                note(_taken_back(answered.request, tool, always_for))


def _taken_back(request: "HumanRequest", tool: str, always_for: AlwaysFor) -> str:
    """How calls that ask nobody from now on are made to ask again."""
    if always_for is AlwaysFor.MISSION:
        which, command = "the mission", f"agency mission ask-again {short(request.execution.mission_id)}"
    else:
        which, command = "this execution", f"agency inbox ask-again {short(request.execution_id)}"
    return f"Later calls of {tool} in {which} ask nobody. {command} {argument(tool)} takes that back."


def _what_follows(request: "HumanRequest") -> str:
    from agency.human.requests import OPEN

    if request.status == OPEN:
        return f"{request.items.filter(decision__isnull=True).count()} more to decide"
    given_up = request.items.filter(decision=HumanDecision.GIVE_UP.value).exists()
    return f"execution {short(request.execution_id)} {'has failed' if given_up else 'goes on'}"


@app.command("ask-again")
def ask_again(
    execution_id: Annotated[str, typer.Argument(metavar="EXECUTION", help="An execution's id.")],
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The tool that was always allowed.")],
) -> None:
    """Take back `--always`: later calls of the tool in this execution ask again."""
    project.setup()
    from agency.execution import answering

    revoked = answering.allow_no_longer(project.find_execution(execution_id), tool)
    console().print(f"Calls of {tool} ask again." if revoked else f"Calls of {tool} ask anyway.")

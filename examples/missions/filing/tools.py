"""The clerk's two tools: one looks, one acts. Before an invoice is filed, a person must agree."""

from typing import Annotated, Any

from pydantic import Field
from records.reading import plain
from records.record import Kind

from agency.agent import Effect, ToolCallInfo, tool
from missions.filing import tray

EMPTY = "The tray is empty: all {n} papers are filed."


@tool(effect=Effect.READ)
def next_paper() -> str:
    """Gives the next paper of the tray."""
    left = tray.unfiled()
    return f"paper: {left[0]}\n\n{tray.text_of(left[0])}" if left else EMPTY.format(n=len(tray.papers()))


def is_invoice(arguments: dict[str, Any]) -> bool:
    return arguments["kind"] == Kind.INVOICE


@tool(effect=Effect.IDEMPOTENT, requires_confirmation=is_invoice, return_direct=True)
def file_paper(
    paper: Annotated[str, Field(min_length=1, max_length=100)],
    kind: Kind,
    name: Annotated[str, Field(min_length=1, max_length=120)],
    call: ToolCallInfo,
) -> str:
    """Files a paper.

    Args:
        paper: as next_paper calls it
        kind: what it is, whatever its title says
        name: who sent or wrote it, as printed
    """
    try:
        _file(paper, kind, name, call.idempotency_key)
    except ValueError:
        if tray.unfiled():
            raise
        return EMPTY.format(n=len(tray.papers()))  # nothing can be filed, and nothing has to be
    left = tray.unfiled()
    still = f"Still on the tray: {', '.join(left)}." if left else EMPTY.format(n=len(tray.papers()))
    return f"{paper} is filed as {kind.value} of {name}. {still}"


def _file(paper: str, kind: Kind, name: str, key: str) -> None:
    if paper not in tray.papers():
        raise ValueError(f"there is no paper {paper!r}; next_paper says which is next")
    if plain(name) not in plain(tray.text_of(paper)):
        raise ValueError(f"{name!r} is not in {paper}; copy the name as printed")
    tray.file(paper, {"kind": kind.value, "name": name}, key)

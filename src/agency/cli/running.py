"""`agency run`: one execution from the command line, by the running service or else in this process."""

import json
import sys
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agency.cli import inline, project
from agency.cli.output import AsJson, complain, console, note, print_json, short, tokens_of
from agency.cli.progress import Line, follow
from agency.enums import ExecutionStatus
from agency.errors import AgencyError, InvalidInput

if TYPE_CHECKING:
    from agency.models import ConfiguredAgent, Execution


def run(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The execution type.")],
    source: Annotated[
        str, typer.Option("--input", metavar="FILE|-", help="A JSON object with the input; - reads stdin.")
    ] = "-",
    agent: Annotated[str | None, typer.Option(help="The agent's name; else the first that fits.")] = None,
    user: Annotated[str | None, typer.Option(help="In whose name; by default the local user's.")] = None,
    wait: Annotated[bool, typer.Option(help="Wait for its end; else a service runs it later.")] = True,
    as_json: AsJson = False,
) -> None:
    """Run one execution to its end and print its output. Exit code 1 if it does not finish."""
    given = read_input(source)
    project.setup()
    served = not wait or project.service_is_up()
    execution = _submit(key, given, agent, user, here=not served)
    if not wait:
        _print_id(execution, as_json)
        return
    if not as_json:
        where = "the service here runs it" if served else "no service runs here, so this process does"
        note(f"Execution {execution.id}: {where}.")
    runner = None if served else inline.start(execution)
    ended = watch(execution, runner, as_json=as_json)
    _report(ended, as_json)
    raise typer.Exit(0 if ended.status == ExecutionStatus.FINISHED else 1)


def read_input(source: str) -> dict[str, Any]:
    """The JSON object in a file, or on stdin for `-`."""
    name = "stdin" if source == "-" else source
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
        data = json.loads(text)
    except OSError as exc:
        raise InvalidInput(f"{exc.strerror}: {name}") from exc
    except UnicodeDecodeError as exc:
        raise InvalidInput(f"{name} is not UTF-8 text: {exc.reason}.") from exc
    except ValueError as exc:
        raise InvalidInput(f"{name} is not JSON: {exc}.") from exc
    if not isinstance(data, dict):
        raise InvalidInput(
            f'{name} must hold a JSON object such as {{"text": "..."}}, not {type(data).__name__}.'
        )
    return data


def _submit(
    key: str, given: dict[str, Any], agent_name: str | None, user: str | None, *, here: bool
) -> "Execution":
    """The accepted execution. One that is to run `here` is not, if its model cannot be had."""
    from django.db import transaction

    from agency.execution import registry, service

    definition = registry.get_definition(key)
    owner = project.user_named(user)
    with transaction.atomic():
        agent = _agent(owner, definition.AGENT_KEY, agent_name)
        execution = service.submit(key, agent, given, owner=owner).execution
        if here:
            _require_model(agent.model or registry.get_agent_class(agent.agent_key).DEFAULT_MODEL or "")
    return execution


def _require_model(name: str) -> None:
    from agency.cli.doctor import model
    from agency.runtime import conf

    if conf.current().LLM_CLIENT_FACTORY is None:
        model.require(name)


def _agent(owner: Any, agent_key: str, name: str | None) -> "ConfiguredAgent":
    from agency.execution.agents import agent_for
    from agency.models import ConfiguredAgent

    if name is None:
        return agent_for(owner, agent_key)
    agent = ConfiguredAgent.objects.filter(owner=owner, name=name).first()
    if agent is None:
        names = sorted(ConfiguredAgent.objects.filter(owner=owner).values_list("name", flat=True))
        raise InvalidInput(f"There is no agent named {name!r}; there are: {', '.join(names) or 'none'}.")
    return agent


def _print_id(execution: "Execution", as_json: bool) -> None:
    if as_json:
        print_json({"id": str(execution.id), "status": execution.status})
    else:
        typer.echo(str(execution.id))


def watch(execution: "Execution", runner: Thread | None, *, as_json: bool) -> "Execution":
    """Show the progress of an execution until it ends or waits for a person; `runner` if it runs here."""
    from agency.models import Execution

    def look() -> list[Line]:
        gone = runner is not None and not runner.is_alive()  # asked before the row, which it writes last
        line = _line(Execution.objects.get(pk=execution.pk))
        if gone and not line.has_stopped:
            raise AgencyError(f"This process could not go on with {short(line.id)}. `agency up` will.")
        return [line]

    follow(console(stderr=True, quiet=as_json), look)
    return Execution.objects.select_related("agent").get(pk=execution.pk)


def _line(row: "Execution") -> Line:
    from agency.models.clock import database_now

    took = ((row.finished_at or database_now()) - row.started_at).total_seconds() if row.started_at else None
    most = 1 + row.config["definition"]["max_retries"]
    attempt = row.iteration if row.is_terminal else min(row.iteration + 1, most)
    return Line(
        id=str(row.id),
        label=row.execution_key or "",
        status=row.status,
        attempt=attempt,
        doing=f"{row.event_seq} events",
        tokens=tokens_of(row.usage),
        took=took,
    )


def _report(row: "Execution", as_json: bool) -> None:
    if as_json:
        from agency.api.schemas import ExecutionOut

        print_json(ExecutionOut.of(row).model_dump(mode="json"))
        return
    if row.status == ExecutionStatus.FINISHED:
        print_json(row.output)
    else:
        why = ": ".join(part for part in (row.failure_code, row.failure_summary) if part)
        complain(f"{row.status.replace('_', ' ')}{f' – {why}' if why else ''}")
    note(f"Look at it: agency show {short(row.id)}, agency trace {short(row.id)}")

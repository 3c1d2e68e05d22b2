"""Commands that run or examine the service: `up`, `worker`, `doctor`."""

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from agency.cli import project
from agency.cli.output import AsJson, console, print_json
from agency.errors import InvalidInput


def up() -> None:
    """Run the service until Ctrl-C: database, broker, web server, workers, dispatcher, local model.

    AGENCY_HOST and AGENCY_PORT say where it listens (127.0.0.1:8765).
    """
    from agency.runtime import supervisor

    raise typer.Exit(supervisor.run())


def worker(
    poll: Annotated[bool, typer.Option("--poll", help="Look for due executions in the database.")] = False,
    threads: Annotated[int, typer.Option(min=1, max=256, help="How many executions at a time.")] = 4,
) -> None:
    """Run executions without a broker, until Ctrl-C. With Celery: `celery -A agency.config.celery worker`."""
    if not poll:
        raise InvalidInput(
            "Say `agency worker --poll`; with a broker, run `celery -A agency.config.celery worker` instead."
        )
    project.setup()
    from agency.runtime import poll as polling

    polling.run(threads=threads)


def doctor(
    invariants: Annotated[
        bool, typer.Option("--invariants", help="Check the stored executions instead, row by row.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Examine this installation and say how to mend what is wrong; exit code 1 if anything is."""
    if invariants:
        project.setup()
    from agency.cli.doctor import check_rows, diagnose

    findings = check_rows() if invariants else diagnose()
    if as_json:
        print_json(
            [{"name": f.name, "ok": f.ok, "detail": f.detail, "fix": f.fix} for f in findings],
        )
    else:
        table = Table.grid(padding=(0, 2))
        for finding in findings:
            mark = Text("✓ ok", style="green") if finding.ok else Text("✗ no", style="red")
            table.add_row(mark, Text(finding.name, style="bold"), Text(finding.detail))
            if not finding.ok and finding.fix:
                table.add_row("", "", Text(f"→ {finding.fix}", style="yellow"))
        console().print(table)
    raise typer.Exit(0 if all(finding.ok for finding in findings) else 1)

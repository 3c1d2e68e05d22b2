"""The command `agency`: gathers the commands and turns expected errors into one sentence and an exit code."""

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from agency.cli import demo, executions, inbox, missions, running, service, tokens, watch
from agency.cli.app import App
from agency.cli.output import complain
from agency.errors import AgencyError, InvalidInput

app = App(
    name="agency",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"agency {version('agency-django')}")
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Durable AI agents for Django: hand an agent a job and walk away.

    State lives in `.agency/` of the working directory, or where AGENCY_HOME points.
    """


app.command("up")(service.up)
app.command("demo")(demo.demo)
app.command("run")(running.run)
app.add_typer(missions.app, name="mission")
app.command("watch")(watch.watch)
app.command("list")(executions.list_executions)
app.command("show")(executions.show)
app.command("trace")(executions.trace)
app.command("cancel")(executions.cancel)
app.add_typer(inbox.app, name="inbox")
app.add_typer(tokens.app, name="token")
app.command("doctor")(service.doctor)
app.command("worker")(service.worker)


def main() -> None:
    """Run the command line and exit: 0 done, 1 it failed, 2 it was called wrongly, 130 interrupted."""
    try:
        app()
    except SystemExit:
        raise
    except InvalidInput as error:
        sys.exit(complain(str(error), error.errors, code=2))
    except AgencyError as error:
        sys.exit(complain(str(error)))
    except _settings_errors() as error:
        sys.exit(complain(str(error)))
    except _database_errors() as error:
        sys.exit(
            complain(f"The database does not answer as it should: {error}. `agency doctor` looks closer.")
        )
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        sys.exit(complain(f"{error.strerror or error}{where}"))


# Django is imported when one of its errors may be on its way, not before: `agency up` lives without it.


def _settings_errors() -> type[Exception]:
    from django.core.exceptions import ImproperlyConfigured

    return ImproperlyConfigured


def _database_errors() -> type[Exception]:
    from django.db.utils import Error

    return Error

"""What is done once before the service starts: migrations, checks of definitions, the choice of model."""

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator

from django.conf import settings
from django.core import checks
from django.core.management import call_command
from django.db import DatabaseError, connection

from agency.agent.providers import choose_model as chosen
from agency.agent.providers import resolve_model
from agency.errors import ConfigurationError

LOCAL = "local:"


def migrate() -> None:
    """Apply missing migrations. Raises `ConfigurationError` when the database cannot be used."""
    try:
        with _one_at_a_time(), _patient():
            call_command("migrate", verbosity=0, interactive=False, skip_checks=True)
    except DatabaseError as error:
        place = connection.settings_dict["NAME"]
        reason = str(error).strip().splitlines()[0]
        raise ConfigurationError(
            f"The database {place} cannot be used ({reason}). Check AGENCY_DATABASE_URL, that the "
            "server runs and that the disk is not full."
        ) from error


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Two commands that start in a new home at once must not both create its tables."""
    with (settings.HOME.path / "migrate.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _patient() -> Iterator[None]:
    """A migration may take its time, which a statement of the service may not."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        yield
        cursor.execute("RESET statement_timeout")


def check_definitions() -> None:
    """Say what the system checks find. A faulty definition does not stop the others."""
    for found in checks.run_checks(tags=["agency"]):
        if found.level >= checks.WARNING and not found.is_silenced():
            hint = f" – {found.hint}" if found.hint else ""
            print(f"{found.id}: {found.msg}{hint}", file=sys.stderr)


def choose_model() -> dict[str, str]:
    """The model of this service, why it was chosen and, for a local one, its name.

    Raises `ConfigurationError` for one that nobody could use, whatever the network does.
    """
    choice = chosen(os.environ)
    local = choice.name.removeprefix(LOCAL) if choice.name.startswith(LOCAL) else ""
    if not local:
        resolve_model(choice.name)
    return {"model": choice.name, "reason": choice.reason, "local": local}

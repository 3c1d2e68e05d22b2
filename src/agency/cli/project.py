"""The Django project behind the command line: set up on first need, with a database that is ready for use."""

import json
import logging
import os
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from agency.errors import ConfigurationError, InvalidInput
from agency.runtime.home import Home

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet

    from agency.models import Execution

M = TypeVar("M", bound="Model")

READY_PROJECT = "agency.config.settings"
LOCAL_USER = "agency"


def setup() -> None:
    """Load Django: the project of `DJANGO_SETTINGS_MODULE`, else the ready one, whose tables are made."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", READY_PROJECT)
    import django
    from django.apps import apps

    if not apps.ready:
        try:
            django.setup()
        except ImportError as error:
            raise ConfigurationError(f"{error}: {_import_fix()}") from error
        _speak_low()
    if os.environ["DJANGO_SETTINGS_MODULE"] == READY_PROJECT:
        home().prepare()
    _migrate()


def _import_fix() -> str:
    """What to correct when the project's settings or one of its apps cannot be imported."""
    name = os.environ["DJANGO_SETTINGS_MODULE"]
    if name != READY_PROJECT:
        return f"correct the settings {name}, or unset DJANGO_SETTINGS_MODULE to use the ready project."
    return "AGENCY_APPS must name importable Django apps, and AGENCY_APPS_DIR the directory they are in."


def _speak_low() -> None:
    """A command talks to a person: only warnings interrupt, unless AGENCY_LOG_LEVEL asks for more."""
    if "AGENCY_LOG_LEVEL" not in os.environ:
        logging.getLogger().setLevel(logging.WARNING)


def home() -> Home:
    """Where this command line's state lives."""
    return Home.of(os.environ)


def service_is_up() -> bool:
    """Whether `agency up` runs in this home and answers."""
    return running_service() is not None


def running_service() -> str | None:
    """The URL of the service that runs in this home, if it is alive."""
    import httpx

    try:
        url = str(json.loads(home().service.read_text())["url"]).rstrip("/")
        answer = httpx.get(f"{url}/health/live", timeout=2, trust_env=False)
    except (OSError, ValueError, KeyError, httpx.HTTPError):
        return None
    return url if answer.is_success else None


def _migrate() -> None:
    """Our own database is brought up to date; somebody else's is only looked at."""
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    executor = MigrationExecutor(connection)
    if not executor.migration_plan(executor.loader.graph.leaf_nodes()):
        return
    if os.environ["DJANGO_SETTINGS_MODULE"] != READY_PROJECT:
        raise ConfigurationError("The database lacks migrations. Run: python manage.py migrate")
    from agency.config import preparation

    preparation.migrate()


def local_user() -> Any:
    """The user in whose name the command line works; it cannot log in."""
    from django.contrib.auth import get_user_model

    users = get_user_model()
    name = users.USERNAME_FIELD
    user, created = users._default_manager.get_or_create(**{name: LOCAL_USER})
    if created:
        user.set_unusable_password()
        user.save()
    return user


def user_named(name: str | None) -> Any:
    """The user with this login name, or the local one; `InvalidInput` if there is no such user."""
    from django.contrib.auth import get_user_model

    if name is None:
        return local_user()
    users = get_user_model()
    user = users._default_manager.filter(**{users.USERNAME_FIELD: name}).first()
    if user is None:
        raise InvalidInput(f"There is no user {name!r}.")
    return user


def find_execution(prefix: str) -> "Execution":
    """The one execution whose id begins with `prefix`."""
    from agency.models import Execution

    return by_prefix(Execution.objects.select_related("agent"), prefix, "execution", "agency list")


def by_prefix(rows: "QuerySet[M]", prefix: str, noun: str, listing: str) -> M:
    """The one row whose UUID begins with `prefix`; `InvalidInput` says if there are none or many.

    `listing` is the command that shows what there is.
    """
    digits = prefix.replace("-", "").lower()
    if not digits or len(digits) > 32 or set(digits) - set("0123456789abcdef"):
        raise InvalidInput(f"{prefix!r} is no {noun} id. `{listing}` shows the ids.")
    lowest, highest = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
    found = list(rows.filter(id__gte=lowest, id__lte=highest)[:2])
    if not found:
        raise InvalidInput(f"There is no {noun} {prefix}. `{listing}` shows what there is.")
    if len(found) > 1:
        raise InvalidInput(f"More than one {noun} begins with {prefix}. Give more digits.")
    return found[0]

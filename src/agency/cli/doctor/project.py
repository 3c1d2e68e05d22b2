"""The Django project: does it load, do its definitions stand, can wake-ups be sent?"""

import os

from agency.cli.doctor.finding import Finding, fine, wrong
from agency.cli.project import READY_PROJECT

FIX_APPS = "AGENCY_APPS must name importable Django apps, and AGENCY_APPS_DIR the directory they are in."
FIX_VARIABLE = "Correct the AGENCY_ variable that is named here."
FIX_SETTINGS = "Correct the settings, or unset DJANGO_SETTINGS_MODULE to use the ready project."


def loads() -> Finding:
    """Set Django up. What the other examinations find presupposes it."""
    import django
    from django.apps import apps
    from django.core.exceptions import ImproperlyConfigured

    from agency.errors import AgencyError

    name = os.environ.setdefault("DJANGO_SETTINGS_MODULE", READY_PROJECT)
    os.environ.setdefault("AGENCY_LOG_LEVEL", "WARNING")
    try:
        django.setup()
    except ImportError as error:
        return wrong("Project", f"{name}: {error}", FIX_APPS if name == READY_PROJECT else FIX_SETTINGS)
    except (ImproperlyConfigured, AgencyError) as error:
        fix = FIX_VARIABLE if name == READY_PROJECT else FIX_SETTINGS
        return wrong("Project", f"{name}: {error}", fix)
    if not apps.is_installed("agency"):
        return wrong("Project", name, 'Add "agency" to INSTALLED_APPS.')
    return fine("Project", f"{name}, Django {django.get_version()}")


def definitions() -> list[Finding]:
    """What agency's system checks find, one finding for each."""
    from django.core import checks

    found = [
        message
        for message in checks.run_checks()
        if str(message.id).startswith("agency.") and not message.is_silenced()
    ]
    if not found:
        return [fine("Definitions", "agents and executions are registered without a complaint")]
    return [
        Finding(
            "Definitions",
            message.level < checks.WARNING,
            f"{message.id}: {message.msg}",
            str(message.hint or ""),
        )
        for message in found
    ]


def broker() -> Finding:
    """Whether wake-ups can be sent. None is fine: workers then look into the database."""
    from agency.runtime import broker as brokers

    url = brokers.configured()
    if url is None and brokers.is_embeddable():
        return fine("Broker", "none set; `agency up` brings its own")
    if url is None:
        return fine("Broker", "none; workers look into the database instead")
    if trouble := brokers.trouble():
        fix = "Start it, or correct AGENCY_BROKER_URL (CELERY_BROKER_URL in a project of your own)."
        return wrong("Broker", f"{url} does not answer: {trouble}", fix)
    return fine("Broker", f"{url} answers")

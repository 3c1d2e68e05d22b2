"""Settings of the harness's processes: those of the fault tests, with the harness's own project."""

from tests.faults.settings import *  # noqa: F403
from tests.faults.settings import INSTALLED_APPS

INSTALLED_APPS = [app for app in INSTALLED_APPS if not app.startswith("tests.")] + [
    "tests.faults.harness.app"
]

"""Settings of processes that a test starts: the test's own database and broker, and the faults' app."""

import json
import os

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES, INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.faults.app"]
DATABASES = {"default": {**DATABASES["default"], "NAME": os.environ["AGENCY_FAULTS_DATABASE"]}}
CELERY_BROKER_URL = os.environ.get("AGENCY_FAULTS_BROKER") or None
CELERY_BROKER_TRANSPORT_OPTIONS = {"unacked_restore_interval": 2, "unacked_restore_throttle": 1}
CELERY_TASK_DEFAULT_QUEUE = os.environ.get("AGENCY_FAULTS_QUEUE", "faults")
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
AGENCY = json.loads(os.environ.get("AGENCY_FAULTS_SETTINGS", "{}"))
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"stderr": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {"kombu": {"level": "WARNING"}, "celery": {"level": "WARNING"}},
}

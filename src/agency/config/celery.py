"""The ready project's Celery app; a project of one's own uses its own instead."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agency.config.settings")

app = Celery("agency")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["agency.runtime"])
app.set_default()

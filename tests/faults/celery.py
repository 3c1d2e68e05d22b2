"""The Celery app of worker processes that a test starts: an ordinary project's, found by `current_app`."""

from celery import Celery

app = Celery("faults")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

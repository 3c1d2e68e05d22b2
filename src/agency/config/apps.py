"""Makes the ready project's Celery app current, so that wake-ups go to its broker."""

from importlib import import_module

from django.apps import AppConfig
from django.conf import settings


class ServiceConfig(AppConfig):
    name = "agency.config"
    label = "agency_service"
    verbose_name = "Agency service"

    def ready(self) -> None:
        if settings.CELERY_BROKER_URL:
            import_module("agency.config.celery")

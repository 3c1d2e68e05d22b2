"""The Django app: registers definitions, system checks and the wake-up of due executions."""

from django.apps import AppConfig


class AgencyConfig(AppConfig):
    name = "agency"
    label = "agency"
    verbose_name = "Agency"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from agency.execution import checks, registry
        from agency.runtime import broadcast, queue

        checks.register_checks()
        registry.autodiscover()
        queue.connect()
        broadcast.connect()

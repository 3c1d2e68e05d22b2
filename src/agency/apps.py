"""The Django app: registers what projects declare, system checks and the wake-up of due executions."""

from django.apps import AppConfig


class AgencyConfig(AppConfig):
    name = "agency"
    label = "agency"
    verbose_name = "Agency"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from agency.execution import checks, registry
        from agency.mission import checks as mission_checks
        from agency.mission.completion import registry as completion
        from agency.mission.watches import registry as watches
        from agency.runtime import broadcast, queue

        checks.register_checks()
        mission_checks.register_checks()
        registry.autodiscover()
        watches.autodiscover()
        completion.autodiscover()
        queue.connect()
        broadcast.connect()

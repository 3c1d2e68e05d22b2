"""Runs a dispatcher: wakes due executions and recovers what died. Run two or more for safety."""

from typing import Any

from django.core.management.base import BaseCommand

from agency.runtime.dispatcher import Dispatcher
from agency.runtime.ending import end_on_signal


class Command(BaseCommand):
    help = "Wake due executions and recover those whose worker died, until stopped (SIGTERM, Ctrl-C)."
    # One faulty definition must not stop the others: `manage.py check` names it.
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        dispatcher = Dispatcher()
        end_on_signal(dispatcher.stop)
        dispatcher.run()

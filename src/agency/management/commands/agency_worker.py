"""Runs a worker without Celery: it finds due executions in the database itself."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from agency.runtime import poll


class Command(BaseCommand):
    help = "Run due executions, found by polling the database, until stopped (SIGTERM, Ctrl-C)."
    # One faulty definition must not stop the others: `manage.py check` names it.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--threads", type=int, help="executions at once (AGENCY['WORKER_SLOTS'])")

    def handle(self, *args: Any, **options: Any) -> None:
        poll.run(options["threads"])

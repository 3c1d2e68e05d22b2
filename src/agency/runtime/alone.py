"""Runs an execution that has lost workers in a process of its own, so that it takes no neighbours along.

From then on only its own death counts: whoever merely ran beside it is not taken for a crash loop. What
runs in that process is `lodger`.
"""

import os
import subprocess
import sys
import threading
import uuid
from contextlib import suppress
from pathlib import Path

from django.conf import settings

from agency.execution.claims import database
from agency.models import Execution, ProviderGate
from agency.models.clock import Now
from agency.redaction import safe_logger
from agency.runtime import conf, lanes, lifeline
from agency.runtime.fairness import in_turn, served

log = safe_logger("agency.runtime")

RESERVED = 5.0
"""Seconds in which the process must have claimed the row; after that it is due for anyone again.

Who dies in between leaves nobody to notice, so this is all that bounds the recovery then. A process that
starts more slowly may meet a second one; the claim lets one of them through.
"""


def reserve() -> str | None:
    """The next due execution that must run alone, put off so that nobody else starts a process for it."""
    chosen = conf.current()
    shut = ProviderGate.objects.using(database()).filter(not_before__gt=Now())
    rows = (
        Execution.objects.using(database())
        .filter(
            finished_at=None,
            next_run_at__lte=Now(),
            cancel_requested_at=None,
            claim_count__gt=1,
            claim_count__gte=chosen.ALONE_AFTER,
            claim_count__lt=chosen.CLAIM_CAP,
        )
        .exclude(provider__in=shut.values("provider"))
    )
    for pk in rows.order_by("next_run_at").values_list("pk", flat=True)[:1]:
        # Who comes second finds the row not due any more.
        if rows.filter(pk=pk).update(next_run_at=Now(RESERVED)) and _has_room(pk):
            return str(pk)
    return None


def _has_room(execution_id: uuid.UUID) -> bool:
    """Whether the limits would let it be claimed now, so that a process is worth its start."""
    found = lanes.look(execution_id).hinted
    return found is not None and bool(in_turn([found], lanes.running(), served(), conf.current()))


class Lodgers:
    """The processes that this one has started, each for one execution."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()

    def run(self, execution_id: str) -> None:
        """Run the execution in a process of its own and wait for its end."""
        log.warning("execution %s has lost workers and runs alone", execution_id)
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "agency.runtime.lodger", execution_id],
            env=_environ(),
            stdin=subprocess.PIPE,
        )
        with self._guard:
            self._running.add(process)
        try:
            status = process.wait()
        finally:
            with self._guard:
                self._running.discard(process)
            process.communicate()
        if status:
            log.warning("execution %s: its process ended with status %s", execution_id, status)

    def end(self) -> None:
        """Ask all of them to give their executions back and end."""
        with self._guard:
            for process in self._running:
                with suppress(ProcessLookupError):
                    process.terminate()


def _environ() -> dict[str, str]:
    """This process's environment for a child that imports what this one can, and ends when this one does."""
    paths = [str(Path(path or ".").absolute()) for path in sys.path]
    kept = {name: value for name, value in os.environ.items() if name != lifeline.BEAT}
    return {
        **kept,
        "DJANGO_SETTINGS_MODULE": settings.SETTINGS_MODULE,
        "PYTHONPATH": os.pathsep.join(paths),
        lifeline.PARENT: str(os.getpid()),
    }

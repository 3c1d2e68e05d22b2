"""Runs one execution in this process: what a worker does, for a command that has no service to ask."""

import threading
import time
from typing import TYPE_CHECKING

from agency.enums import ExecutionStatus

if TYPE_CHECKING:
    from agency.models import Execution

LOOK_EVERY = 0.2


def start(execution: "Execution") -> threading.Thread:
    """Run `execution` on a thread until it ends or waits for a person; its row says how it goes.

    A daemon thread: Ctrl-C leaves, and the row stays for a service to go on with.
    """
    thread = threading.Thread(target=_run, args=(execution.pk,), name="agency-run", daemon=True)
    thread.start()
    return thread


def _run(execution_id: object) -> None:
    from django.db import connections

    from agency.models import Execution
    from agency.runtime.body import run_claimed
    from agency.runtime.claim import claim
    from agency.runtime.sweep import Sweeper

    sweeper = Sweeper()
    try:
        while True:
            row = Execution.objects.get(pk=execution_id)
            if row.is_terminal or row.status == ExecutionStatus.INTERRUPTED:
                return
            sweeper.turn()
            claimed = claim(str(execution_id))
            if claimed is None:
                time.sleep(LOOK_EVERY)
            else:
                run_claimed(claimed)
    finally:
        connections.close_all()

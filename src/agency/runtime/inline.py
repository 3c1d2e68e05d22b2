"""Runs an execution in this process, without broker or worker: for tests, and for a command that waits."""

import uuid

from agency.enums import ExecutionStatus
from agency.execution.claims import database
from agency.models import Execution
from agency.runtime import sweep
from agency.runtime.body import run_claimed
from agency.runtime.claim import claim


def run_until_parked(execution: Execution | str | uuid.UUID) -> Execution:
    """Run an execution until it has ended or waits for a person; returns the row as it is then.

    Pauses (a model that was not available) are skipped, so nothing is waited for. Works inside a test's
    transaction too.
    """
    execution_id = execution.pk if isinstance(execution, Execution) else execution
    while True:
        row = Execution.objects.using(database()).get(pk=execution_id)
        if row.is_terminal or row.status == ExecutionStatus.INTERRUPTED.value:
            return row
        claimed = claim(execution_id, ignore_due=True)
        if claimed is not None:
            run_claimed(claimed)
            continue
        sweep.close()
        row.refresh_from_db()
        if not row.is_terminal:
            raise RuntimeError(f"execution {row.pk} is being run by another process ({row.claim_owner})")

"""Runs an execution in this process, without broker or worker: for tests, and for a command that waits."""

import uuid

from agency.enums import ExecutionStatus, LoopStatus
from agency.errors import ConfigurationError
from agency.execution.claims import database
from agency.execution.store import HELD
from agency.models import Execution
from agency.runtime import sweep
from agency.runtime.body import Outcome, run_claimed
from agency.runtime.claim import claim


def run_until_parked(execution: Execution | str | uuid.UUID) -> Execution:
    """Run an execution until it has ended or waits (for a person; a mission also for what its supervisor
    named); returns the row as it is then.

    Pauses (a model that was not available) are skipped, so nothing is waited for. Works inside a test's
    transaction too. `ConfigurationError` where this code does not know the execution's definition.
    """
    execution_id = execution.pk if isinstance(execution, Execution) else execution
    while True:
        row = Execution.objects.using(database()).get(pk=execution_id)
        if row.is_terminal or _is_parked(row):
            return row
        claimed = claim(execution_id, ignore_due=True)
        if claimed is not None:
            if run_claimed(claimed) is Outcome.HELD:
                row.refresh_from_db()
                raise ConfigurationError(
                    f"execution {row.pk} cannot run here: {row.metadata[HELD]['reason']}"
                )
            continue
        sweep.close()
        row.refresh_from_db()
        if not row.is_terminal:
            raise RuntimeError(f"execution {row.pk} is being run by another process ({row.claim_owner})")


def _is_parked(row: Execution) -> bool:
    """Whether it waits for a person, or for what its supervisor named."""
    return row.status == ExecutionStatus.INTERRUPTED.value or row.loop_status == LoopStatus.WAITING.value

"""Tells the story of an order: check it, remember how the agent is set, store it as due, or cancel it.

Works inside the caller's transaction and never enqueues: `signals.execution_due` says what is due.
"""

import uuid
from collections.abc import Sequence
from typing import Any

from agency.enums import TERMINAL_STATUSES, ExecutionStatus, Wakeup
from agency.errors import InvalidInput
from agency.execution import registry, store
from agency.execution.claims import database
from agency.execution.order import check_agent, check_input, check_key
from agency.execution.placing import Placing, Submission
from agency.execution.registry import Definition
from agency.execution.snapshot import digest, provider, snapshot
from agency.models import ConfiguredAgent, Execution
from agency.models.clock import Now

Order = dict[str, Any] | Any
"""What a caller gives as input: a JSON object or an instance of the definition's `INPUT_TYPE`."""


def definitions_of(agent: ConfiguredAgent) -> list[Definition]:
    """What the agent can be asked to run."""
    return registry.definitions_for(agent.agent_key)


def submit(
    definition: str | Definition,
    agent: ConfiguredAgent,
    input: Order,
    *,
    owner: Any = None,
    idempotency_key: str | None = None,
    batch_id: uuid.UUID | None = None,
) -> Submission:
    """Store an execution that is due at once; it runs after the caller's commit.

    `owner` is the agent's if not given. `InvalidInput` carries the path of each field that does not fit;
    with an `idempotency_key` that the owner has used for another order: `IdempotencyConflict`.
    """
    chosen = registry.resolve(definition)
    check_agent(chosen, agent)
    stored = check_input(chosen, input)
    key = check_key(idempotency_key)
    once = None if key is None else [(key, digest([chosen.EXECUTION_KEY, str(agent.pk), stored]))]
    return _placing(chosen, agent, owner, batch_id).place([stored], once)[0]


def submit_batch(
    definition: str | Definition,
    agent: ConfiguredAgent,
    inputs: Sequence[Order],
    *,
    owner: Any = None,
    idempotency_key: str | None = None,
) -> list[Submission]:
    """Store one execution for each input, all or none; they share a `batch_id`.

    Errors name the place as `inputs[3].field`. The `idempotency_key` covers the whole batch: used again
    with the same inputs it gives the same executions, with others `IdempotencyConflict`.
    """
    chosen = registry.resolve(definition)
    check_agent(chosen, agent)
    stored = _check_inputs(chosen, inputs)
    key = check_key(idempotency_key, room=len(f":{len(stored)}"))
    whole = digest([chosen.EXECUTION_KEY, str(agent.pk), stored])
    once = None if key is None else [(f"{key}:{n}", whole) for n in range(len(stored))]
    return _placing(chosen, agent, owner, uuid.uuid4()).place(stored, once)


def request_cancel(execution: Execution) -> ExecutionStatus:
    """Ask for a cancel and return the status that the execution has then.

    One that nobody runs is cancelled at once; a running one is stopped by its worker within moments; one
    that has ended stays as it is.
    """
    rows = Execution.objects.using(database()).filter(pk=execution.pk)
    open_rows = rows.exclude(status__in=[status.value for status in TERMINAL_STATUSES])
    open_rows.filter(cancel_requested_at__isnull=True).update(cancel_requested_at=Now())
    store.close_cancelled(execution.pk)
    return ExecutionStatus(rows.values_list("status", flat=True).get())


def _check_inputs(definition: Definition, inputs: Sequence[Order]) -> list[dict[str, Any]]:
    if not isinstance(inputs, list | tuple) or not inputs:
        message = "must be a list with at least one input"
        raise InvalidInput(f"inputs: {message}", [{"path": "inputs", "message": message}])
    stored: list[dict[str, Any]] = []
    errors: list[dict[str, str]] = []
    for n, item in enumerate(inputs):
        try:
            stored.append(check_input(definition, item, f"inputs[{n}]"))
        except InvalidInput as exc:
            errors += exc.errors
    if errors:
        raise InvalidInput(f"{errors[0]['path']}: {errors[0]['message']}", errors)
    return stored


def _placing(
    definition: Definition, agent: ConfiguredAgent, owner: Any, batch_id: uuid.UUID | None
) -> Placing:
    config, config_hash = snapshot(definition, agent)
    columns = {
        "execution_key": definition.EXECUTION_KEY,
        "provider": provider(agent),
        "batch_id": batch_id,
        "config": config,
        "config_hash": config_hash,
    }
    return Placing(agent, owner or agent.owner, definition.NAME, Wakeup.RUN_EXECUTION, columns)

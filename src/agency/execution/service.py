"""Tells the story of an order: check it, remember how the agent is set, store it as due, or cancel it.

Works inside the caller's transaction and never enqueues: `signals.execution_due` says what is due.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction

from agency.enums import TERMINAL_STATUSES, ExecutionStatus
from agency.errors import IdempotencyConflict, InvalidInput
from agency.execution import registry, store
from agency.execution.claims import database
from agency.execution.order import check_agent, check_input, check_key
from agency.execution.registry import Definition
from agency.execution.signals import execution_due
from agency.execution.snapshot import digest, snapshot
from agency.models import ConfiguredAgent, Execution, Thread
from agency.models.clock import Now

Order = dict[str, Any] | Any
"""What a caller gives as input: a JSON object or an instance of the definition's `INPUT_TYPE`."""


@dataclass(frozen=True, slots=True)
class Submission:
    """An accepted order; `created` is `False` where the idempotency key had brought it before."""

    execution: Execution
    created: bool


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
    order = _Order(chosen, agent, owner or agent.owner, batch_id)
    return order.place(stored, key, digest([chosen.EXECUTION_KEY, str(agent.pk), stored]))


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
    order = _Order(chosen, agent, owner or agent.owner, uuid.uuid4())
    with transaction.atomic(using=database()):
        return [
            order.place(item, None if key is None else f"{key}:{n}", f"{whole[:48]}{n:016x}")
            for n, item in enumerate(stored)
        ]


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


@dataclass(frozen=True, slots=True)
class _Order:
    """What the executions of one call have in common."""

    definition: Definition
    agent: ConfiguredAgent
    owner: Any
    batch_id: uuid.UUID | None

    def place(self, stored: dict[str, Any], key: str | None, digest: str) -> Submission:
        """Create the execution, or find the one that the key has brought, also when two callers race."""
        if key is None:
            return Submission(self._create(stored, None, None), True)
        if (existing := self._placed(key, digest)) is not None:
            return Submission(existing, False)
        try:
            return Submission(self._create(stored, key, digest), True)
        except IntegrityError:
            existing = self._placed(key, digest)
            if existing is None:
                raise
            return Submission(existing, False)

    def _placed(self, key: str, digest: str) -> Execution | None:
        rows = Execution.objects.using(database())
        existing = rows.filter(owner=self.owner, idempotency_key=key).first()
        if existing is not None and existing.idempotency_digest != digest:
            raise IdempotencyConflict(
                f"the idempotency key {key!r} was used for another order, execution {existing.pk}; "
                "use a new key for a new order",
                str(existing.pk),
            )
        return existing

    def _create(self, stored: dict[str, Any], key: str | None, digest: str | None) -> Execution:
        config, config_hash = snapshot(self.definition, self.agent)
        with transaction.atomic(using=database()):
            thread = Thread.objects.using(database()).create(
                owner=self.owner, agent=self.agent, title=self.definition.NAME
            )
            execution = Execution.objects.using(database()).create(
                owner=self.owner,
                agent=self.agent,
                thread=thread,
                execution_key=self.definition.EXECUTION_KEY,
                batch_id=self.batch_id,
                next_run_at=Now(),
                input=stored,
                config=config,
                config_hash=config_hash,
                idempotency_key=key,
                idempotency_digest=digest,
            )
            execution_due.send(Execution, execution_id=str(execution.pk), expected_iteration=1)
        execution.refresh_from_db(fields=["next_run_at"])
        return execution

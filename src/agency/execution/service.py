"""Tells the story of an order: check it, remember how the agent is set, store it as due, or cancel it.

Works inside the caller's transaction and never enqueues: `signals.execution_due` says what is due.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from django.db import IntegrityError, transaction

from agency.enums import TERMINAL_STATUSES, ExecutionStatus
from agency.errors import IdempotencyConflict, InvalidInput
from agency.execution import registry, store
from agency.execution.claims import database
from agency.execution.order import check_agent, check_input, check_key
from agency.execution.registry import Definition
from agency.execution.signals import execution_due
from agency.execution.snapshot import digest, provider, snapshot
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
    once = None if key is None else [(key, digest([chosen.EXECUTION_KEY, str(agent.pk), stored]))]
    return _Order(chosen, agent, owner or agent.owner, batch_id).place([stored], once)[0]


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
    return _Order(chosen, agent, owner or agent.owner, uuid.uuid4()).place(stored, once)


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

    def place(self, stored: list[dict[str, Any]], once: list[tuple[str, str]] | None) -> list[Submission]:
        """Create the executions, or find those that these keys have brought, also when two callers race.

        `once` holds a key and a digest of the whole order for each input.
        """
        if once is None:
            return self._create(stored, [(None, None)] * len(stored))
        if placed := self._placed(once):
            return placed
        try:
            return self._create(stored, once)
        except IntegrityError:
            if placed := self._placed(once):
                return placed
            raise

    def _placed(self, once: list[tuple[str, str]]) -> list[Submission]:
        keys = [key for key, _ in once]
        rows = Execution.objects.using(database()).filter(owner=self.owner, idempotency_key__in=keys)
        found = {row.idempotency_key: row for row in rows}
        if not found:
            return []
        if {key: row.idempotency_digest for key, row in found.items()} != dict(once):
            _refuse(next(found[key] for key in keys if key in found))
        return [Submission(found[key], created=False) for key in keys]

    def _create(
        self, stored: list[dict[str, Any]], once: Sequence[tuple[str | None, str | None]]
    ) -> list[Submission]:
        config, config_hash = snapshot(self.definition, self.agent)
        asked = provider(self.agent)
        threads = [Thread(owner=self.owner, agent=self.agent, title=self.definition.NAME) for _ in stored]
        rows = [
            Execution(
                owner=self.owner,
                agent=self.agent,
                thread=thread,
                execution_key=self.definition.EXECUTION_KEY,
                provider=asked,
                batch_id=self.batch_id,
                next_run_at=Now(),
                input=given,
                config=config,
                config_hash=config_hash,
                idempotency_key=key,
                idempotency_digest=digest,
            )
            for given, thread, (key, digest) in zip(stored, threads, once, strict=True)
        ]
        with transaction.atomic(using=database()):
            Thread.objects.using(database()).bulk_create(threads)
            Execution.objects.using(database()).bulk_create(rows)
            for row in rows:
                execution_due.send(Execution, execution_id=str(row.pk), expected_iteration=1)
        made = Execution.objects.using(database()).in_bulk([row.pk for row in rows])
        return [Submission(made[row.pk], created=True) for row in rows]


def _refuse(existing: Execution) -> NoReturn:
    raise IdempotencyConflict(
        f"the idempotency key was used for another order, execution {existing.pk}; give each order its own",
        str(existing.pk),
    )

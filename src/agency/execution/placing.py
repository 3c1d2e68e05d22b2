"""Stores orders as due executions: once for each idempotency key, whoever races. Writes nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from django.db import IntegrityError, transaction

from agency.enums import Wakeup
from agency.errors import IdempotencyConflict
from agency.execution.claims import database
from agency.execution.signals import execution_due
from agency.models import ConfiguredAgent, Execution, Thread
from agency.models.clock import Now


@dataclass(frozen=True, slots=True)
class Submission:
    """An accepted order; `created` is `False` where the idempotency key had brought it before."""

    execution: Execution
    created: bool


Once = tuple[str, str]
"""An idempotency key and a digest of the whole order."""


@dataclass(frozen=True, slots=True)
class Placing:
    """What the executions of one call have in common; `columns` are those of each row."""

    agent: ConfiguredAgent
    owner: Any
    title: str
    wakeup: Wakeup
    columns: dict[str, Any] = field(default_factory=dict[str, Any])

    def place(self, inputs: Sequence[dict[str, Any]], once: Sequence[Once] | None) -> list[Submission]:
        """Create the executions, or find those that these keys have brought, also when two callers race.

        `once` holds a key and a digest for each input.
        """
        if once is None:
            return self._create(inputs, [(None, None)] * len(inputs))
        if placed := self._placed(once):
            return placed
        try:
            return self._create(inputs, once)
        except IntegrityError:
            if placed := self._placed(once):
                return placed
            raise

    def _placed(self, once: Sequence[Once]) -> list[Submission]:
        keys = [key for key, _ in once]
        rows = Execution.objects.using(database()).filter(owner=self.owner, idempotency_key__in=keys)
        found = {row.idempotency_key: row for row in rows}
        if not found:
            return []
        if {key: row.idempotency_digest for key, row in found.items()} != dict(once):
            _refuse(next(found[key] for key in keys if key in found))
        return [Submission(found[key], created=False) for key in keys]

    def _create(
        self, inputs: Sequence[dict[str, Any]], once: Sequence[tuple[str | None, str | None]]
    ) -> list[Submission]:
        threads = [Thread(owner=self.owner, agent=self.agent, title=self.title) for _ in inputs]
        rows = [
            Execution(
                owner=self.owner,
                agent=self.agent,
                thread=thread,
                next_run_at=Now(),
                input=given,
                idempotency_key=key,
                idempotency_digest=digest,
                **self.columns,
            )
            for given, thread, (key, digest) in zip(inputs, threads, once, strict=True)
        ]
        with transaction.atomic(using=database()):
            Thread.objects.using(database()).bulk_create(threads)
            Execution.objects.using(database()).bulk_create(rows)
            for row in rows:
                execution_due.send(
                    Execution, execution_id=str(row.pk), expected_iteration=1, wakeup=self.wakeup
                )
        made = Execution.objects.using(database()).in_bulk([row.pk for row in rows])
        return [Submission(made[row.pk], created=True) for row in rows]


def _refuse(existing: Execution) -> NoReturn:
    raise IdempotencyConflict(
        f"the idempotency key was used for another order, execution {existing.pk}; give each order its own",
        str(existing.pk),
    )

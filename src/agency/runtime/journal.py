"""The journal of a claimed run, over the rows of its steps and events.

A new claimer reads what the attempt has recorded once, at the start, and replays it: answers come
from here, and the scratchpad and state are brought to where each recorded step had left them.
"""

from collections.abc import Sequence
from typing import Any

from django.db import InterfaceError, OperationalError

from agency.agent.context import ExecutionContext
from agency.agent.events import Event
from agency.agent.journal import Recorded
from agency.agent.text import canonical
from agency.enums import Effect, EventKind, StepStatus
from agency.errors import RunReleased, RunSignal
from agency.execution import record, store
from agency.execution.claims import Claim, database
from agency.execution.conversation import ClosedAttempt
from agency.execution.scratchpad import ToolScratchpad
from agency.models import Event as EventRow
from agency.models import Step


class UncertainEffect(RunSignal):
    """A call that must not be repeated was cut by a crash: nobody knows whether it took effect."""


class DatabaseAway(RunReleased):
    """The database took no writes for longer than a run can wait; it is no fault of the run or its model."""


class DbJournal:
    """Journal and ledger of one claim."""

    def __init__(self, claim: Claim, scratchpad: ToolScratchpad, context: ExecutionContext) -> None:
        self._claim = claim
        self._scratchpad = scratchpad
        self._context = context
        self._steps: dict[str, Step] = {}
        self._events: dict[str, list[Event]] = {}
        self._unrestored: list[Step] = []
        self._mark = 0
        self._state = canonical(context.state)
        if claim.fence > 1:
            self._load()

    @property
    def scope(self) -> str:
        return f"{self._claim.execution_id}:{self._claim.iteration}"

    def recall(self, key: str) -> Recorded | None:
        step = self._steps.get(self._full(key))
        if step is None:
            return None
        self._restore(step)
        return Recorded(step.result, self._events.get(step.key, []))

    def intend(self, key: str, effect: Effect, idempotency_key: str) -> None:
        step = self._write(lambda: record.intend(self._claim, self._full(key), effect, idempotency_key))
        ours = step.claim_id == self._claim.claim_id
        if effect == Effect.UNSAFE and not ours and step.status == StepStatus.INTENT.value:
            raise UncertainEffect(
                f"The call {key.split(':')[-2]!r} was cut by a crash and is not marked as safe to repeat "
                "(effect='read' or 'idempotent'), so it was not called again."
            )

    def record(self, key: str, result: Any, events: Sequence[Event], settles: Sequence[str] = ()) -> None:
        state = canonical(self._context.state)
        entry = record.Entry(
            key=self._full(key),
            result=result,
            events=events,
            settles=[self._full(one) for one in settles],
            scratch=self._scratchpad.since(self._mark),
            state=self._changed(state),
        )
        mark = self._mark + len(entry.scratch)
        self._write(lambda: record.record(self._claim, entry))
        self._mark, self._state = mark, state

    def _changed(self, state: str) -> dict[str, Any] | None:
        """The context's state if it has changed; `InvalidInput` names a key that no journal could keep."""
        if state == self._state:
            return None
        self._context.check_state()
        return self._context.state

    def close_attempt(self, closed: ClosedAttempt) -> None:
        """Commit the attempt and keep the claim; what follows is journaled under the next one."""
        self._write(lambda: store.commit_attempt(self._claim, closed))
        self._steps, self._events, self._unrestored = {}, {}, []
        self._mark = 0

    def _full(self, key: str) -> str:
        return f"{self._claim.iteration}:{key}"

    def _load(self) -> None:
        execution_id, iteration = self._claim.execution_id, self._claim.iteration
        done = Step.objects.using(database()).filter(
            execution_id=execution_id, key__startswith=f"{iteration}:", status=StepStatus.DONE.value
        )
        self._unrestored = list(done.order_by("done_at", "id"))
        self._steps = {step.key: step for step in self._unrestored}
        rows = EventRow.objects.using(database()).filter(
            execution_id=execution_id, iteration=iteration, kind=EventKind.CONTENT.value
        )
        for row in rows.order_by("seq"):
            self._events.setdefault(row.data.get("key", ""), []).append(record.core_event(row))

    def _restore(self, step: Step) -> None:
        """Bring scratchpad and state to where they were when `step` was recorded."""
        if step not in self._unrestored:
            return
        until = self._unrestored.index(step) + 1
        for one in self._unrestored[:until]:
            self._scratchpad.restore(one.scratch)
            if one.state is not None:
                self._context.state.clear()
                self._context.state.update(one.state)
        del self._unrestored[:until]
        self._mark = self._scratchpad.mark()
        self._state = canonical(self._context.state)

    def _write(self, write: Any) -> Any:
        """A database that stays away is no fault of the run: it gives its claim back."""
        try:
            return write()
        except (OperationalError, InterfaceError) as exc:
            raise DatabaseAway(f"the database is away: {exc}") from exc

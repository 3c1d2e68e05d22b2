"""The journal of a claimed run, over the rows of its steps and events.

A new claimer reads what the attempt has recorded once, at the start, and replays it: answers come
from here, and the scratchpad and state are brought to where each recorded step had left them.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import InterfaceError, OperationalError

from agency.agent.context import ExecutionContext
from agency.agent.events import Event, ToolCall
from agency.agent.journal import Recorded
from agency.agent.payloads import Body, Payloads
from agency.agent.text import canonical
from agency.enums import Effect, EventKind, StepStatus
from agency.errors import RunReleased, RunSignal
from agency.execution import answering, record, store
from agency.execution.claims import Claim, database
from agency.execution.conversation import ClosedAttempt
from agency.execution.event_rows import core_events
from agency.execution.keys import CallKey
from agency.execution.scratchpad import ToolScratchpad
from agency.models import Event as EventRow
from agency.models import Step
from agency.runtime import conf

FULL_RUN_LIMIT = 2_000
"""Characters that are taken in of a result when the execution holds as much as it may."""


class UncertainEffect(RunSignal):
    """Calls that must not be repeated were cut by a crash: nobody knows whether they took effect.

    `calls` are pairs of the journal's key and the call, with the arguments that it was made with.
    """

    def __init__(self, calls: Sequence[tuple[str, ToolCall]]) -> None:
        super().__init__(", ".join(call.name for _, call in calls))
        self.calls = calls


class DatabaseAway(RunReleased):
    """The database took no writes for longer than a run can wait; it is no fault of the run or its model."""


class DbJournal:
    """Journal and ledger of one claim."""

    def __init__(
        self,
        claim: Claim,
        scratchpad: ToolScratchpad,
        context: ExecutionContext,
        stored: int,
    ) -> None:
        """`stored` is how many bytes the execution holds already, as `past.read` says."""
        self._claim = claim
        self._settings = conf.current()
        self.payloads = Payloads(keep=self._keep)
        self._stored = 0
        self._scratchpad = scratchpad
        self._context = context
        self._steps: dict[str, Step] = {}
        self._events: dict[str, list[Event]] = {}
        self._begins: dict[str, int] = {}
        """The number of each entry's first event."""
        self._unrestored: list[Step] = []
        self._cut: dict[str, Step] = {}
        self._mark = 0
        self._state = canonical(context.state)
        if not claim.is_fresh:
            self._load()
        self._measure(stored)

    @property
    def scope(self) -> str:
        return f"{self._claim.execution_id}:{self._claim.iteration}"

    def recall(self, key: str) -> Recorded | None:
        full = self._full(key)
        step, events = self._steps.get(full), self._events.get(full, [])
        if step is not None:
            self._restore(step)
            return Recorded(step.result, events)
        if not events:
            return None
        self._restore_before(self._begins[full])
        return Recorded(None, events)

    def intend(self, key: str, effect: Effect, idempotency_key: str) -> None:
        full = self._full(key)
        if effect == Effect.UNSAFE and full in self._cut:
            raise UncertainEffect(self._cut_calls(full))
        self._write(lambda: record.intend(self._claim, full, effect, idempotency_key))

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
        self._measure(self._write(lambda: record.record(self._claim, entry, self._settings.EVENT_LIMIT)))
        self._mark, self._state = mark, state

    def _keep(self, body: Body) -> None:
        self._measure(self._write(lambda: record.keep(self._claim, body)))

    def _measure(self, added: int) -> None:
        """What results may still take, now that the execution holds so many bytes more."""
        self._stored += added
        self.payloads.room = max(0, self._settings.RUN_LIMIT - self._stored)
        self.payloads.limit = self._settings.RESULT_LIMIT
        if not self.payloads.room:
            self.payloads.limit = min(self.payloads.limit, FULL_RUN_LIMIT)

    def _changed(self, state: str) -> dict[str, Any] | None:
        """The context's state if it has changed; `InvalidInput` names a key that no journal could keep."""
        if state == self._state:
            return None
        self._context.check_state()
        return self._context.state

    def is_allowed(self, tool: str) -> bool:
        """Whether a person has agreed to all calls of `tool`, and has not taken that back since."""
        return self._write(lambda: answering.is_allowed(self._claim.execution_id, tool))

    def close_attempt(self, closed: ClosedAttempt) -> None:
        """Commit the attempt and keep the claim; what follows is journaled under the next one."""
        self._write(lambda: store.commit_attempt(self._claim, closed))
        self._claim.attempt_deadline = conf.attempt_deadline()
        self._steps, self._events, self._begins, self._unrestored, self._cut = {}, {}, {}, [], {}
        self._mark, self._state = 0, canonical(self._context.state)

    def _full(self, key: str) -> str:
        return f"{self._claim.iteration}:{key}"

    def _load(self) -> None:
        execution_id, iteration = self._claim.execution_id, self._claim.iteration
        steps = Step.objects.using(database()).filter(
            execution_id=execution_id, key__startswith=f"{iteration}:"
        )
        self._unrestored = list(steps.filter(status=StepStatus.DONE.value).order_by("done_at", "id"))
        self._steps = {step.key: step for step in self._unrestored}
        cut = steps.filter(status=StepStatus.INTENT.value).order_by("id")
        self._cut = {step.key: step for step in cut}
        rows = EventRow.objects.using(database()).filter(
            execution_id=execution_id, iteration=iteration, kind=EventKind.CONTENT.value
        )
        found = list(rows.order_by("seq"))
        for row, event in zip(found, core_events(found), strict=True):
            key = row.data.get("key", "")
            self._begins.setdefault(key, row.seq)
            self._events.setdefault(key, []).append(event)

    def _cut_calls(self, key: str) -> list[tuple[str, ToolCall]]:
        """Every call that was cut and must not be repeated, that of `key` among them."""
        unsafe = [step.key for step in self._cut.values() if step.effect == Effect.UNSAFE.value]
        return [(one, self._call(one)) for one in dict.fromkeys([*unsafe, key])]

    def begun(self, tools: Iterable[str]) -> list[str]:
        """The ids, as people know them, of the calls of `tools` that were begun in this attempt."""
        wanted = frozenset(tools)
        if not wanted:
            return []
        events = (event for events in self._events.values() for event in events)
        found = [
            "/".join((*event.within, result.tool_call_id))
            for event in events
            for result in event.tool_results
            if result.name in wanted
        ]
        keys = [
            key for key in (*self._steps, *self._cut) if (call := CallKey.read(key)) and call.tool in wanted
        ]
        return list(dict.fromkeys([*found, *(self._call(key).tool_call_id for key in keys)]))

    def _call(self, key: str) -> ToolCall:
        """The call that an entry announces, under the id by which people know it."""
        where = CallKey.read(key)
        if where is None:
            raise ValueError(f"{key} is no key of a tool call")
        said = [event for event in self._events[where.model_key] if event.tool_calls]
        call = said[-1].tool_calls[where.ordinal]
        return call.model_copy(update={"tool_call_id": where.qualified(call.tool_call_id)})

    def _restore(self, step: Step) -> None:
        """Bring scratchpad and state to where they were when `step` was recorded."""
        if step in self._unrestored:
            self._restore_first(self._unrestored.index(step) + 1)

    def _restore_before(self, seq: int) -> None:
        """The same for the event of this number. A step of version 2 that names no event is older."""
        older = [step.event_seq is None or step.event_seq < seq for step in self._unrestored]
        if True in older:
            self._restore_first(len(older) - older[::-1].index(True))

    def _restore_first(self, until: int) -> None:
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

"""A run of an agent inside a tool call of another: one journal, one record, one state, one budget.

The inner run's events go into the outer context, marked with the call that they belong to, so that a
stored context holds everything and the inner run can be picked up from it.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from agency.agent.context import ExecutionContext
from agency.agent.events import Event, ToolCall, Usage
from agency.agent.history import USER, history_of
from agency.agent.injection import ToolCallInfo
from agency.agent.journal import Recorded, RunScope
from agency.agent.payloads import Body, Payloads
from agency.agent.record import Record
from agency.agent.reservations import Reservations
from agency.agent.result import AgentResult
from agency.enums import Effect
from agency.errors import RunCancelled

if TYPE_CHECKING:
    from agency.agent.agent import Agent
    from agency.agent.confirmation import Confirmation
    from agency.agent.relay import Relay

T = TypeVar("T")


@dataclass(slots=True)
class Pauses:
    """A turn's paused calls: what people decided (by call id), and how the runs inside calls stand.

    `held`: inner runs that wait for a person or a model; `inner_keys`: journal keys of those that ended.
    `ended` are the keys of announced calls whose results nothing but the event with all results will hold;
    `spent` is what tools asked of models in calls whose results that event will hold.
    """

    decisions: dict[str, "Confirmation"] = field(default_factory=dict[str, "Confirmation"])
    held: dict[str, AgentResult] = field(default_factory=dict[str, AgentResult])
    inner_keys: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    ended: list[str] = field(default_factory=list[str])
    spent: Usage | None = None

    def spend(self, usage: Usage | None) -> None:
        if usage is not None:
            self.spent = usage if self.spent is None else self.spent + usage

    def inside(self, call_id: str) -> dict[str, "Confirmation"]:
        """The decisions on calls of the run inside `call_id`, by the ids that it knows them by."""
        start = f"{call_id}/"
        return {
            key[len(start) :]: replace(decision, tool_call_id=key[len(start) :])
            for key, decision in self.decisions.items()
            if key.startswith(start)
        }


def qualified(outer: ToolCall, call: ToolCall) -> ToolCall:
    """An inner call under the id by which the outer run's caller decides on it."""
    return call.model_copy(update={"tool_call_id": f"{outer.tool_call_id}/{call.tool_call_id}"})


def has_begun(context: ExecutionContext, call: ToolCall) -> bool:
    """Whether the record holds a run inside this call."""
    return bool(_events_inside(context, call.tool_call_id))


def inner_context(context: ExecutionContext, call: ToolCall) -> ExecutionContext:
    """The context of the run inside `call` as the outer one recorded it; `state` is the outer's own."""
    inner = ExecutionContext(context.execution_id, state=context.state)
    for event in reversed(_events_inside(context, call.tool_call_id)):
        inner.add_event(_unmarked(event))
    if inner.events:
        last = next(event for event in reversed(inner.events) if not event.within)
        rests = last.author == USER or last.error is not None or history_of(inner).open_calls
        inner.current_step = last.step if rests else last.step + 1
    return inner


def restore(record: Record, keys: Iterable[str]) -> None:
    """Take the journaled events of runs inside calls into the record, but for those that it has."""
    known = {event.id for event in record.context.events}
    for key in keys:
        recorded = record.journal.recall(key)
        if recorded is not None:
            record.take([event for event in recorded.events if event.id not in known])


class InnerJournal:
    """The outer run's journal under the call's id; its events enter the outer record as well.

    Everything is done on the outer run's thread. `keys` are those of the inner run's events. `broken` is
    what went wrong there: the outer run's fault, and not a failure of the call.
    """

    def __init__(self, record: Record, relay: "Relay", call_id: str) -> None:
        self.scope = f"{record.journal.scope or record.context.execution_id}/{call_id}"
        self.keys = [
            event.call["key"]
            for event in reversed(_events_inside(record.context, call_id))
            if event.call is not None
        ]
        self.abandoned = False
        self.broken: Exception | None = None
        self._record = record
        self._relay = relay
        self._call_id = call_id

    def recall(self, key: str) -> Recorded | None:
        full = f"{self._call_id}/{key}"

        def read() -> Recorded | None:
            found = self._record.journal.recall(full)
            if found is not None and found.events:
                self.keys.append(full)
                self._record.take(found.events)
            return found

        found = self.outside(read)
        return found and Recorded(found.result, [_unmarked(event) for event in found.events])

    def intend(self, key: str, effect: Effect, idempotency_key: str) -> None:
        full = f"{self._call_id}/{key}"
        self.outside(lambda: self._record.journal.intend(full, effect, idempotency_key))

    def record(self, key: str, result: Any, events: Sequence[Event], settles: Sequence[str] = ()) -> None:
        full = f"{self._call_id}/{key}"
        marked = [_marked(event, self._call_id, full, self._record.author) for event in events]

        def write() -> None:
            self._record.put(full, result, marked, [f"{self._call_id}/{one}" for one in settles])
            if marked:
                self.keys.append(full)

        self.outside(write)

    def outside(self, work: Callable[[], T]) -> T:
        """Have `work` done on the outer run's thread."""

        def guarded() -> T:
            if self.abandoned:
                raise RunCancelled("nobody waits for this run any more")
            return work()

        try:
            return self._relay.do(guarded)
        except Exception as exc:
            self.broken = exc
            raise


class InnerRun:
    """What is needed to run `agent` inside `call`; made on the outer run's thread, run on any."""

    def __init__(
        self,
        agent: "Agent",
        call: ToolCall,
        outer: "Agent",
        record: Record,
        relay: "Relay",
        pauses: Pauses,
        shared: Reservations | None = None,
    ) -> None:
        self.journal = InnerJournal(record, relay, call.tool_call_id)
        self.context = inner_context(record.context, call)
        self._agent = agent
        self._outer = outer
        self._shared = shared
        self._decisions = list(pauses.inside(call.tool_call_id).values())

    def go(self, ask: Callable[[], Any], info: ToolCallInfo) -> AgentResult:
        """Begin with what `ask` gives as user input, or go on where the record ends."""
        agent, outer, journal = copy(self._agent), self._outer, self.journal
        agent.scope = RunScope(
            journal=journal,
            resources=outer.scope.resources,
            checkpoint=lambda: journal.outside(outer.scope.checkpoint),
            is_cancelled=lambda: journal.abandoned or info.cancelled,
            deadline=info.deadline,
            payloads=self._payloads(),
            is_allowed=lambda tool: journal.outside(lambda: outer.scope.is_allowed(tool)),
            shared=self._shared,
        )
        agent.model_retries = min(agent.model_retries, outer.model_retries)
        started = bool(self.context.events)
        return agent.run(None if started else ask(), self.context, self._decisions)

    def _payloads(self) -> Payloads:
        payloads, journal = self._outer.scope.payloads, self.journal

        def keep(body: Body) -> None:
            journal.outside(lambda: payloads.keep(body))

        return replace(payloads, keep=keep)


def _events_inside(context: ExecutionContext, call_id: str) -> list[Event]:
    """The marked events of the run inside a call, newest first; the call itself ends the search."""
    found: list[Event] = []
    for event in reversed(context.events):
        if within := event.within:
            if within[0] == call_id:
                found.append(event)
        elif any(call.tool_call_id == call_id for call in event.tool_calls):
            break
    return found


def _marked(event: Event, call_id: str, key: str, caller: str) -> Event:
    """The event as the outer context holds it. What opens an inner turn is said by the calling agent."""
    call: dict[str, Any] = {**(event.call or {}), "within": [call_id, *event.within], "key": key}
    author = event.author
    if author == USER:
        author, call["opens"] = caller, True
    return event.model_copy(update={"author": author, "call": call})


def _unmarked(event: Event) -> Event:
    """The event as the inner context holds it."""
    call = dict(event.call or {})
    call["within"] = event.within[1:]
    call["key"] = call["key"].removeprefix(f"{event.within[0]}/")
    author = event.author
    if not call["within"]:
        del call["within"], call["key"]
        if call.pop("opens", False):
            author = USER
    return event.model_copy(update={"author": author, "call": call or None})

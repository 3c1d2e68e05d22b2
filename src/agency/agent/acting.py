"""Runs the tool calls of one model response: validated, journaled, in parallel where allowed.

The journal, hooks and checkpoint are only ever used on the run's own thread; worker threads run tools
and nothing else.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from agency.agent.agent_tool import AgentTool
from agency.agent.events import ToolCall, ToolResult, Usage
from agency.agent.injection import HumanAnswer
from agency.agent.inner import InnerRun, Pauses, restore
from agency.agent.jobs import Job, Outcome, failure, fitting, full_key, success
from agency.agent.journal import NullJournal
from agency.agent.record import Record
from agency.agent.reservations import Reservations
from agency.agent.result import AgentResult
from agency.agent.stopping import stop_signal
from agency.agent.text import canonical, cut, fingerprint
from agency.agent.tool_schema import explain
from agency.agent.tools import Tool
from agency.enums import Effect
from agency.errors import RunSignal
from agency.redaction import MASK

if TYPE_CHECKING:
    from agency.agent.agent import Agent
    from agency.agent.relay import Relay


SECRET_LOST = (
    "Not run: the run was cut off or paused before this call, and its arguments held a secret, which is not "
    "kept. If it is still needed, make the call again with all of its arguments."
)


class Act:
    """One act of `agent`: calls in, results out, in the calls' order."""

    def __init__(self, agent: "Agent", record: Record, pauses: Pauses) -> None:
        self.agent = agent
        self.record = record
        self.pauses = pauses
        self.scope = agent.scope
        self.relay: Relay | None = None
        self.shared: Reservations | None = None
        self.results: dict[int, Outcome] = {}
        self.journaled = type(agent.scope.journal) is not NullJournal
        """Whether a journal remembers: keys and copies of results are made for nothing else."""
        self.unended = 0
        """Jobs without an outcome yet."""
        self.reads_only = False
        self.unrecorded: tuple[Job, ToolResult] | None = None
        """The newest result that only the event with all results will record."""

    def run(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """A result for each call, but for those that are held, which `pauses` then names.

        A `RunSignal` passes through after what was done is recorded. Reads are recorded with all results
        only, and so is the call that ends last: nothing comes between.
        """
        jobs: list[Job] = []
        for place, call in enumerate(calls):
            ready = self._prepare(place, call)
            if isinstance(ready, Job):
                jobs.append(ready)
            else:
                self.results[place] = ready
        self.unended = len(jobs)
        self.reads_only = self.journaled and all(
            job.tool.effect is Effect.READ and job.inner is None for job in jobs
        )
        token = stop_signal.set(self.scope.is_cancelled)
        try:
            self._run(jobs)
        except RunSignal:
            if self.unrecorded is not None and not self.reads_only:
                self.pauses.ended.clear()
                self._record(*self.unrecorded)
            raise
        finally:
            stop_signal.reset(token)
        done = self.results
        return [result for place in range(len(calls)) if isinstance(result := done[place], ToolResult)]

    def _run(self, jobs: list[Job]) -> None:
        if len(jobs) > 1 and all(job.tool.conduct.parallel for job in jobs):
            self._at_once(jobs)
        else:
            for job in jobs:
                self._single(job)

    def _prepare(self, place: int, call: ToolCall) -> Job | ToolResult:
        tool = self.agent.tools_by_name.get(call.name)
        if tool is None:
            known = ", ".join(self.agent.tools_by_name) or "none"
            return failure(call, f"There is no tool {call.name!r}. The tools are: {known}.")
        if call.invalid is not None:
            broken = cut(call.invalid, 500)
            return failure(
                call, f"The arguments of {call.name} are not a JSON object; it was not run: {broken}"
            )
        key = self._key(place, call) if self.journaled or tool.parameters.injected else ""
        recorded = self.scope.journal.recall(key) if self.journaled else None
        if recorded is not None:
            return self._replayed(call, recorded.result)
        if call.tool_call_id in self.record.history.masked and self._lacks_a_secret(tool, call):
            if tool.effect is Effect.UNSAFE:
                full = full_key(self.scope, self.record.context, key)
                self.scope.journal.intend(key, tool.effect, full)
            return failure(call, SECRET_LOST)
        try:
            arguments = tool.parameters.validate(call.arguments)
        except ValidationError as exc:
            return failure(call, f"Invalid arguments for {call.name}: {explain(exc)}")
        inner = self._inner(tool.agent, call) if isinstance(tool, AgentTool) else None
        resources = self._resources(tool, call)
        return Job(place, call, tool, arguments, key, self.record.context, self.scope, resources, inner)

    def _key(self, place: int, call: ToolCall) -> str:
        ordinal = self.record.history.ordinals.get(call.tool_call_id, place)
        return self.record.key(f"{ordinal}:{call.name}:{fingerprint(call.arguments)}")

    def _lacks_a_secret(self, tool: Tool, call: ToolCall) -> bool:
        """Whether the call was read from a record, which keeps no secrets, and nobody has filled it in.

        A question was put to a person without the secret, and its answer needs none.
        """
        if tool.asks_person and tool.effect is Effect.READ:
            return False
        return MASK in canonical(call.arguments)

    def _replayed(self, call: ToolCall, recorded: dict[str, Any]) -> ToolResult:
        """The recorded result, with the record of the run inside the call and what its tool spent."""
        result = dict(recorded)
        keys: list[str] = result.pop("inner_keys", [])
        if keys:
            restore(self.record, keys)
            self.pauses.inner_keys[call.tool_call_id] = keys
        if spent := result.pop("spent", None):
            self.pauses.spend(Usage.model_validate(spent))
        return ToolResult.model_validate(result)

    def _inner(self, agent: "Agent", call: ToolCall) -> InnerRun:
        from agency.agent.relay import Relay

        self.relay = self.relay or Relay()
        self.shared = self.shared or self._shared()
        return InnerRun(agent, call, self.agent, self.record, self.relay, self.pauses, self.shared)

    def _shared(self) -> Reservations | None:
        """What the runs inside these calls share: this turn's limits, and those that it is under itself."""
        limits, around = self.agent.limits, self.scope.shared
        return around if limits is None else Reservations(limits, self.record.history, around)

    def _resources(self, tool: Tool, call: ToolCall) -> Mapping[type, Any]:
        decision = self.pauses.decisions.get(call.tool_call_id) if tool.asks_person else None
        if decision is None:
            return self.scope.resources
        return {**self.scope.resources, HumanAnswer: HumanAnswer(decision.answer)}

    def _single(self, job: Job) -> None:
        if job.tool.timeout is not None and not job.tool.is_async:
            self._at_once([job])
            return
        answered = self._begin(job)
        self._finish(job, answered or job.work())

    def _at_once(self, jobs: list[Job]) -> None:
        from agency.agent.parallel import Parallel  # threads, which most runs have no use for
        from agency.agent.relay import Relay

        relay = self.relay or Relay()
        Parallel(relay, self.scope.checkpoint, self._begin, self._finish).run(deque(jobs))

    def _begin(self, job: Job) -> ToolResult | None:
        """Last things before the call; a hook's answer stands for it."""
        self.scope.checkpoint()
        hook = self.agent.hooks.before_tool
        if hook is not None and (answer := hook(self.record.context, job.call)) is not None:
            return fitting(job.call, answer) if isinstance(answer, ToolResult) else success(job.call, answer)
        if job.tool.effect is not Effect.READ:
            self.scope.journal.intend(job.key, job.tool.effect, job.idempotency_key)
        return None

    def _finish(self, job: Job, outcome: Outcome) -> None:
        self.unended -= 1
        if isinstance(outcome, AgentResult):
            self.results[job.place] = self.pauses.held[job.call.tool_call_id] = outcome
            return
        hook = self.agent.hooks.after_tool
        if hook is not None and (replaced := hook(self.record.context, job.call, outcome)) is not None:
            outcome = fitting(job.call, replaced)
        self.results[job.place] = outcome
        self.pauses.spend(job.tally.total)
        if not self.journaled:
            return
        if job.whole is not None:
            self.scope.payloads.keep(job.whole)
            job.whole = None
        if job.inner is not None and job.inner.journal.keys:
            self.pauses.inner_keys[job.call.tool_call_id] = job.inner.journal.keys
        if self.reads_only or not self.unended:
            self.unrecorded = job, outcome
            if job.tool.effect is not Effect.READ:
                self.pauses.ended.append(job.key)
        else:
            self._record(job, outcome)

    def _record(self, job: Job, result: ToolResult) -> None:
        kept = result.model_dump(mode="json")
        if keys := self.pauses.inner_keys.get(job.call.tool_call_id):
            kept["inner_keys"] = keys
        if (spent := job.tally.total) is not None:
            kept["spent"] = spent.model_dump(mode="json")
        self.scope.journal.record(job.key, kept, [])

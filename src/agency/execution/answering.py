"""Answers of people: what they decide, and the execution that is due again with the last decision.

One transaction, which locks the execution first. The first answer to a call wins; who comes later gets
what is on record.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agency.agent.events import ToolResult
from agency.enums import (
    AlwaysFor,
    EventKind,
    ExecutionStatus,
    HumanDecision,
    HumanRequestKind,
    HumanRequestStatus,
    StepStatus,
)
from agency.errors import StaleExecution
from agency.execution import resuming, store
from agency.execution.claims import database, settled
from agency.execution.failure import ExecutionFailureCode
from agency.execution.keys import CallKey
from agency.execution.storable import storable
from agency.human import answers, requests
from agency.human.answers import ItemAnswer
from agency.human.asking import BECAUSE
from agency.models import Execution, HumanRequest, HumanRequestItem, Mission, Step
from agency.models.clock import Now

ALWAYS_ALLOW = "always_allow"
"""Where an execution's `metadata` names tools whose calls ask nobody, and whether that holds still."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What became of an answer; `request` is as it stands now. `refused` says why nothing was written."""

    request: HumanRequest
    refused: str | None = None


def answer(request_id: uuid.UUID, given: Sequence[ItemAnswer], by: Any) -> Answered:
    """Decide on calls of an open request, in the name of the user `by`.

    With the last decision the execution is due again (or ends, if it was given up). `InvalidInput` names
    what does not fit; an answer that comes too late, or to another call than was shown, is refused.
    """
    execution_id = requests.requests().values_list("execution_id", flat=True).get(pk=request_id)

    def write() -> str | None:
        row = _locked(execution_id)
        request = requests.requests().get(pk=request_id)
        items = {item.call_id: item for item in request.items.order_by("position")}
        why = _closed(row, request) or _taken(items, given)
        if why is None:
            answers.check(items, given, of_mission=row.mission_id is not None)
            _decide(row, request, items, given, by)
        return why

    refused = settled(write, lambda: _found(request_id, given, by))
    return Answered(requests.requests().get(pk=request_id), refused or None)


def is_allowed(execution_id: str | uuid.UUID, tool: str) -> bool:
    """Whether calls of `tool` ask nobody in this execution now."""
    rows = Execution.objects.using(database()).filter(pk=execution_id)
    found = rows.values_list("metadata", "mission__always_allow")
    metadata, of_mission = settled(found.get, lambda: None, single=True)
    return bool(merged(of_mission, metadata).get(tool))


def allowed(execution: Execution) -> dict[str, bool]:
    """The tools that people have allowed for the execution or its mission, and whether that holds still."""
    rows = Mission.objects.using(database()).filter(pk=execution.mission_id)
    of_mission = None if execution.mission_id is None else rows.values_list("always_allow", flat=True).get()
    return merged(of_mission, execution.metadata)


def merged(of_mission: dict[str, bool] | None, metadata: dict[str, Any]) -> dict[str, bool]:
    """What was said for the one execution counts more than what was said for all of the mission."""
    return {**(of_mission or {}), **metadata.get(ALWAYS_ALLOW, {})}


def allow_no_longer(execution: Execution, tool: str) -> bool:
    """Have later calls of `tool` ask again in this execution; `False` if they do already."""

    def write() -> bool:
        row = _locked(execution.pk)
        if not allowed(row).get(tool):
            return False
        kept = row.metadata.get(ALWAYS_ALLOW, {})
        store.update(row, metadata={**row.metadata, ALWAYS_ALLOW: {**kept, tool: False}})
        return True

    return settled(write, lambda: None)


def allow_for_mission(mission_id: Any, said: dict[str, bool]) -> dict[str, bool]:
    """Write for all executions of a mission whether calls of tools ask nobody; returns what that changes.

    Within the caller's transaction, which holds no mission and at most one execution.
    """
    rows = Mission.objects.using(database()).filter(pk=mission_id)
    before: dict[str, bool] = rows.select_for_update(no_key=True).values_list("always_allow", flat=True).get()
    changed = {tool: holds for tool, holds in said.items() if holds is not bool(before.get(tool))}
    if changed:
        rows.update(always_allow={**before, **changed})
    return changed


def _locked(execution_id: uuid.UUID) -> Execution:
    return Execution.objects.using(database()).select_for_update().get(pk=execution_id)


def _closed(row: Execution, request: HumanRequest) -> str | None:
    """Why the request takes no answers, or `None`. The database's clock decides on the expiry."""
    if request.status != requests.OPEN:
        return f"The request is {request.status}; this answer came too late."
    if row.status != ExecutionStatus.INTERRUPTED.value or row.cancel_requested_at is not None:
        return "The execution does not wait for an answer any more."
    if requests.expired().filter(pk=request.pk).exists():
        return "The request has expired; this answer came too late."
    return None


def _taken(items: dict[str, HumanRequestItem], given: Sequence[ItemAnswer]) -> str | None:
    for one in given:
        item = items.get(one.call_id)
        if item is not None and item.decision is not None:
            return f"The call {one.call_id} was decided before: {item.decision}."
        if item is not None and item.digest != one.digest:
            return f"The digest is not that of the call {one.call_id}: read the request again."
    return None


def _decide(
    row: Execution,
    request: HumanRequest,
    items: dict[str, HumanRequestItem],
    given: Sequence[ItemAnswer],
    by: Any,
) -> None:
    for one in given:
        _write(items[one.call_id], one, by)
        if request.kind == HumanRequestKind.UNCERTAIN_EFFECT.value:
            _settle_step(row, items[one.call_id], one)
    left = request.items.filter(decision__isnull=True).count()
    notice = {
        **resuming.notice(request),
        "decisions": {one.call_id: one.decision.value for one in given},
        "by": by.get_username(),
        "undecided": left,
    }
    store.lifecycle_event(row, EventKind.REQUEST_ANSWERED, notice)
    _always_allow(row, items, given)
    given_up = any(one.decision is HumanDecision.GIVE_UP for one in given)
    if left and not given_up:
        store.update(row, metadata=row.metadata)
        return
    if not resuming.close(request, HumanRequestStatus.ANSWERED):
        raise StaleExecution(f"request {request.pk} was closed meanwhile")
    if given_up:
        summary = f"A person gave the execution up. {request.message}"
        store.end(row, ExecutionStatus.FAILED, code=_given_up_code(request), summary=summary)
        store.announce(str(row.pk))
    else:
        resuming.resume(row, request)


def _given_up_code(request: HumanRequest) -> str:
    """Why an execution has failed that a person did not let go on."""
    if request.kind == HumanRequestKind.BUDGET.value:
        return ExecutionFailureCode.BUDGET_EXCEEDED
    if request.kind == HumanRequestKind.INPUT.value:
        return request.items.get().proposed.get(BECAUSE) or ExecutionFailureCode.MISSION_FAILED
    return ExecutionFailureCode.RUNTIME_ERROR


def _write(item: HumanRequestItem, one: ItemAnswer, by: Any) -> None:
    """The compare-and-set of one decision."""
    undecided = requests.items().filter(pk=item.pk, digest=one.digest, decision__isnull=True)
    written = undecided.update(
        decision=one.decision.value,
        effective=one.effective(item),
        answer=one.value,
        reason=storable(one.reason),
        decided_by=by,
        decided_at=Now(),
    )
    if written != 1:
        raise StaleExecution(f"the call {one.call_id} was decided meanwhile")


def _settle_step(row: Execution, item: HumanRequestItem, one: ItemAnswer) -> None:
    """What a person knows of a cut call enters the journal: its result, or that it is to be made again."""
    intent = Step.objects.using(database()).filter(
        execution=row, key=item.step_key, status=StepStatus.INTENT.value
    )
    key = CallKey.read(item.step_key)
    if one.decision is HumanDecision.RUN_AGAIN:
        done: int = intent.delete()[0]
    elif one.decision is HumanDecision.HAPPENED and key is not None:
        result = ToolResult(
            tool_call_id=key.own(item.call_id), name=item.tool, status="success", content=one.value
        )
        done = intent.update(
            status=StepStatus.DONE.value,
            done_at=Now(),
            event_seq=row.event_seq,
            result=result.model_dump(mode="json"),
        )
    else:
        return
    if not done:
        raise StaleExecution(f"the journal holds no open call {item.step_key}")


def _always_allow(row: Execution, items: dict[str, HumanRequestItem], given: Sequence[ItemAnswer]) -> None:
    """Allow the tools, for the mission as far as that was said, and else for the execution alone.

    What was taken back in this execution before holds no longer in either case.
    """
    tools = {items[one.call_id].tool: one.always_for for one in given if one.always}
    if not tools:
        return
    for_mission = {tool for tool, what in tools.items() if what is AlwaysFor.MISSION}
    kept = row.metadata.get(ALWAYS_ALLOW, {})
    kept = {tool: holds for tool, holds in kept.items() if holds or tool not in for_mission}
    for_this = {tool: True for tool in tools if tool not in for_mission}
    row.metadata = {**row.metadata, ALWAYS_ALLOW: {**kept, **for_this}}
    if for_mission:
        allow_for_mission(row.mission_id, dict.fromkeys(for_mission, True))


def _found(request_id: uuid.UUID, given: Sequence[ItemAnswer], by: Any) -> str | None:
    """After a COMMIT of unknown outcome: an empty text if this answer is on record, `None` if not."""
    for one in given:
        rows = requests.items().filter(request_id=request_id, call_id=one.call_id, decided_by=by)
        if not rows.filter(decision=one.decision.value, digest=one.digest).exists():
            return None
    return ""

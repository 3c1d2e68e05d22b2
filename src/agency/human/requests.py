"""Writes requests: opened with the pause of an execution, closed with its end, found by their expiry.

Every function that writes runs inside the caller's transaction, which holds the execution's row.
"""

import hashlib
import uuid
from datetime import timedelta
from typing import Any

from django.db import router
from django.db.models import F, QuerySet

from agency.agent.confirmation import Confirmation
from agency.agent.text import canonical, clean_json
from agency.enums import HumanDecision, HumanRequestStatus
from agency.human.asking import Ask, Item
from agency.models import HumanRequest, HumanRequestItem
from agency.models.clock import Now
from agency.redaction import redact

OPEN = HumanRequestStatus.OPEN.value
_CONFIRMING = [
    decision.value for decision in (HumanDecision.APPROVE, HumanDecision.REJECT, HumanDecision.ANSWER)
]


def requests() -> QuerySet[HumanRequest]:
    return HumanRequest.objects.using(router.db_for_write(HumanRequest))


def items() -> QuerySet[HumanRequestItem]:
    return HumanRequestItem.objects.using(router.db_for_write(HumanRequestItem))


def open_request(execution_id: uuid.UUID, iteration: int, ask: Ask, seconds: float) -> HumanRequest:
    """Put `ask` on record as the execution's one open request; it expires in `seconds`."""
    request = requests().create(
        execution_id=execution_id,
        iteration=iteration,
        kind=ask.kind.value,
        message=storable(ask.message),
        created_at=Now(),
        expires_at=Now(seconds),
    )
    items().bulk_create(_row(request, position, item) for position, item in enumerate(ask.items))
    return request


def close(execution_id: uuid.UUID, status: HumanRequestStatus) -> None:
    """Close the execution's open request, if it has one."""
    rows = requests().filter(execution_id=execution_id, status=OPEN)
    rows.update(status=status.value, closed_at=Now())


def decisions_for(execution_id: object, iteration: int) -> list[Confirmation]:
    """What people (or the expiry) decided on the calls of an iteration, as the agent takes it.

    Decisions of a request that is still open are not among them: a run goes on when all are there.
    """
    rows = items().filter(
        request__execution_id=execution_id, request__iteration=iteration, decision__in=_CONFIRMING
    )
    decided = rows.exclude(request__status=OPEN).order_by("decided_at", "id")
    return [confirmation(row) for row in decided]


def confirmation(item: HumanRequestItem) -> Confirmation:
    decision: Any = item.decision
    return Confirmation(item.call_id, decision, item.effective, item.reason, item.answer)


def expired() -> QuerySet[HumanRequest]:
    """Open requests whose time is over."""
    return requests().filter(status=OPEN, expires_at__lte=Now()).order_by("expires_at")


def expiring(warn_seconds: float) -> QuerySet[HumanRequest]:
    """Open requests that end within `warn_seconds` and were not warned of; short-lived ones never are."""
    long_lived = requests().filter(created_at__lt=F("expires_at") - timedelta(seconds=warn_seconds))
    soon = long_lived.filter(status=OPEN, warned_at__isnull=True, expires_at__lte=Now(warn_seconds))
    return soon.order_by("expires_at")


def storable(value: Any) -> Any:
    """A JSON value without secrets and without what a database refuses."""
    return clean_json(redact(value))


def digest_of(call_id: str, tool: str, arguments: Any) -> str:
    """What binds a decision to the call that was shown."""
    return hashlib.sha256(canonical([call_id, tool, arguments]).encode()).hexdigest()


def _row(request: HumanRequest, position: int, item: Item) -> HumanRequestItem:
    call = item.call
    proposed = storable(call.arguments)
    return HumanRequestItem(
        request=request,
        position=position,
        kind=item.kind.value,
        call_id=call.tool_call_id,
        tool=call.name,
        digest=digest_of(call.tool_call_id, call.name, proposed),
        proposed=proposed,
        answer_schema=storable(item.schema),
        step_key=item.step_key,
    )

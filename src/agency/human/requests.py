"""Writes requests: opened with the pause of an execution, closed with its end, found by their expiry.

Every function that writes runs inside the caller's transaction, which holds the execution's row.
"""

import hashlib
import uuid
from datetime import timedelta
from typing import Any

from django.db import router
from django.db.models import F, QuerySet

from agency.agent.text import canonical
from agency.enums import HumanRequestStatus
from agency.human.asking import Ask, Item, storable
from agency.human.schemas import storable_schema
from agency.models import HumanRequest, HumanRequestItem
from agency.models.clock import Now

OPEN = HumanRequestStatus.OPEN.value


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


def expired() -> QuerySet[HumanRequest]:
    """Open requests whose time is over."""
    return requests().filter(status=OPEN, expires_at__lte=Now()).order_by("expires_at")


def expiring(warn_seconds: float) -> QuerySet[HumanRequest]:
    """Open requests that end within `warn_seconds` and were not warned of; short-lived ones never are."""
    long_lived = requests().filter(created_at__lt=F("expires_at") - timedelta(seconds=warn_seconds))
    soon = long_lived.filter(status=OPEN, warned_at__isnull=True, expires_at__lte=Now(warn_seconds))
    return soon.order_by("expires_at")


def _digest(call_id: str, tool: str, arguments: Any) -> str:
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
        digest=_digest(call.tool_call_id, call.name, proposed),
        proposed=proposed,
        answer_schema=storable_schema(item.schema),
        step_key=item.step_key,
    )

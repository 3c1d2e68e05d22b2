"""`/executions`: submit, list, read, follow, cancel."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Header, Path, Query, Router, Status
from pydantic import AwareDatetime, BaseModel, BeforeValidator, Field

from agency.api.agents import agent_of
from agency.api.body import only_known
from agency.api.mission_schemas import IterationOut, IterationPage
from agency.api.pagination import LIMIT, MAX_LIMIT, page
from agency.api.problems import invalid
from agency.api.schemas import (
    BatchOrder,
    BatchOut,
    CancelOut,
    EventOut,
    EventPage,
    ExecutionOut,
    ExecutionPage,
    ExecutionRow,
    Key,
    Order,
)
from agency.api.trace import execution_trace
from agency.enums import ExecutionStatus, LoopStatus
from agency.execution import service
from agency.models import Execution, visible_to
from agency.models.event import with_event_seq

router = Router()
LARGEST_SEQ = 2**63 - 1
PLAIN_TEXT = {"description": "OK", "content": {"text/plain": {"schema": {"type": "string"}}}}
IdempotencyKey = Annotated[
    str | None,
    Header(None, alias="Idempotency-Key", min_length=1, max_length=180, pattern=r"^[\x21-\x7e]+$"),
]


def _iso(value: Any) -> Any:
    """Pydantic alone would also read `0.5` as a moment: half a second after 1970."""
    try:
        return datetime.fromisoformat(value)
    except ValueError as exc:
        raise ValueError("is no moment such as 2026-01-31T12:00:00Z") from exc


Moment = Annotated[AwareDatetime, BeforeValidator(_iso)]


class Filters(BaseModel):
    """What the list can be narrowed to; moments are ISO 8601 with an offset."""

    status: ExecutionStatus | None = None
    loop_status: LoopStatus | None = None
    execution_key: Key | None = None
    mission: UUID | None = None
    agent: UUID | None = None
    batch: UUID | None = None
    created_after: Moment | None = None
    created_before: Moment | None = None
    cursor: str | None = None
    limit: int = Field(LIMIT, ge=1, le=MAX_LIMIT)


def execution_of(user: Any, execution_id: UUID) -> Execution:
    """The execution with this id among those that `user` may see, else 404."""
    rows = visible_to(user, Execution.objects.select_related("agent"))
    execution = rows.filter(pk=execution_id).first()
    if execution is None:
        raise Http404(f"There is no execution {execution_id}, or you may not see it.")
    return execution


@router.post(
    "",
    response={202: ExecutionOut, 200: ExecutionOut},
    operation_id="submit_execution",
    summary="Submit one execution",
)
def submit(
    request: HttpRequest, response: HttpResponse, order: Order, idempotency_key: IdempotencyKey = None
) -> Any:
    """Accepted with 202 and run in the background; `Location` is where to follow it.

    The same `Idempotency-Key` with the same body gives the same execution (200), with another body 409.
    """
    submission = service.submit(
        order.execution_key,
        _agent_to_run(request, order.agent),
        order.input,
        owner=request.user,
        idempotency_key=idempotency_key,
    )
    execution = execution_of(request.user, submission.execution.id)
    response["Location"] = _url(request, "get_execution", execution.id)
    return Status(202 if submission.created else 200, ExecutionOut.of(execution))


@router.post(
    "/batch",
    response={202: BatchOut, 200: BatchOut},
    operation_id="submit_batch",
    summary="Submit many executions of one type",
)
def submit_batch(
    request: HttpRequest, response: HttpResponse, order: BatchOrder, idempotency_key: IdempotencyKey = None
) -> Any:
    """All inputs are validated before any is accepted. The `Idempotency-Key` covers the whole batch."""
    with transaction.atomic():
        submissions = service.submit_batch(
            order.execution_key,
            _agent_to_run(request, order.agent),
            order.inputs,
            owner=request.user,
            idempotency_key=idempotency_key,
        )
    batch_id = submissions[0].execution.batch_id
    wanted = with_event_seq(Execution.objects.select_related("agent"))
    rows = wanted.in_bulk([item.execution.id for item in submissions])
    response["Location"] = f"{_url(request, 'list_executions')}?batch={batch_id}"
    shown = [ExecutionRow.of(rows[item.execution.id]) for item in submissions]
    return Status(202 if submissions[0].created else 200, BatchOut(batch=batch_id, executions=shown))


def _agent_to_run(request: HttpRequest, agent_id: UUID) -> Any:
    try:
        return agent_of(request.user, agent_id)
    except Http404 as exc:
        raise invalid(str(exc), "agent") from exc


def _url(request: HttpRequest, name: str, *args: Any) -> str:
    return reverse(f"{request.resolver_match.namespace}:{name}", args=args)


@router.get("", response=ExecutionPage, operation_id="list_executions", summary="Executions, newest first")
def list_executions(request: HttpRequest, filters: Query[Filters]) -> Any:
    only_known(request, *Filters.model_fields)
    rows = visible_to(request.user, Execution.objects.select_related("agent"))
    named = {
        "status": filters.status,
        "loop_status": filters.loop_status,
        "execution_key": filters.execution_key,
        "mission_id": filters.mission,
        "agent_id": filters.agent,
        "batch_id": filters.batch,
        "created_at__gt": filters.created_after,
        "created_at__lt": filters.created_before,
    }
    rows = rows.filter(**{name: value for name, value in named.items() if value is not None})
    return page(with_event_seq(rows), filters.cursor, filters.limit, ExecutionRow.of)


@router.get("/{execution_id}", response=ExecutionOut, operation_id="get_execution", summary="One execution")
def get_execution(request: HttpRequest, execution_id: UUID) -> Any:
    only_known(request)
    return ExecutionOut.of(execution_of(request.user, execution_id))


@router.get(
    "/{execution_id}/events",
    response=EventPage,
    operation_id="list_events",
    summary="The log of an execution, oldest first, without gaps",
)
def list_events(
    request: HttpRequest,
    execution_id: UUID,
    after: int = Query(0, ge=0, le=LARGEST_SEQ),
    limit: int = Query(MAX_LIMIT, ge=1, le=1000),
) -> Any:
    """Read on with `after` of the answer until `after == last_seq` and `terminal`."""
    only_known(request, "after", "limit")
    execution = execution_of(request.user, execution_id)
    rows = list(execution.events.filter(seq__gt=after).order_by("seq")[:limit])
    return EventPage(
        items=[EventOut.of(row) for row in rows],
        after=rows[-1].seq if rows else after,
        last_seq=execution.event_seq,
        terminal=execution.is_terminal,
    )


@router.get(
    "/{execution_id}/iterations",
    response=IterationPage,
    operation_id="list_iterations",
    summary="The ledger of an execution, oldest first",
)
def list_iterations(
    request: HttpRequest,
    execution_id: UUID,
    after: int = Query(0, ge=0, le=LARGEST_SEQ),
    limit: int = Query(MAX_LIMIT, ge=1, le=1000),
) -> Any:
    """Committed iterations only; read on with `after` of the answer."""
    only_known(request, "after", "limit")
    execution = execution_of(request.user, execution_id)
    rows = list(execution.iterations.filter(n__gt=after).order_by("n")[:limit])
    return IterationPage(
        items=[IterationOut.of(row) for row in rows],
        after=rows[-1].n if rows else after,
        iteration=execution.iteration,
    )


@router.get(
    "/{execution_id}/blobs/{sha256}",
    operation_id="get_blob",
    summary="The whole of what an event or result shows cut",
    openapi_extra={"responses": {200: PLAIN_TEXT}},
)
def get_blob(
    request: HttpRequest, execution_id: UUID, sha256: Annotated[str, Path(pattern="^[0-9a-f]{64}$")]
) -> HttpResponse:
    """A tool's result as text or JSON; of an event (its `data.blob`) the `content` as JSON."""
    only_known(request)
    blob = execution_of(request.user, execution_id).blobs.filter(sha256=sha256).first()
    if blob is None:
        raise Http404(f"Execution {execution_id} keeps no body {sha256}.")
    return HttpResponse(blob.content, content_type="text/plain; charset=utf-8")


@router.get(
    "/{execution_id}/trace",
    operation_id="get_trace",
    summary="What happened, as text to read",
    openapi_extra={"responses": {200: PLAIN_TEXT}},
)
def get_trace(request: HttpRequest, execution_id: UUID) -> HttpResponse:
    only_known(request)
    text = execution_trace(execution_of(request.user, execution_id))
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


@router.post(
    "/{execution_id}/cancel",
    response=CancelOut,
    operation_id="cancel_execution",
    summary="Cancel an execution",
)
def cancel(request: HttpRequest, execution_id: UUID) -> Any:
    """An execution that has ended stays as it is; asking twice is harmless."""
    service.request_cancel(execution_of(request.user, execution_id))
    execution = execution_of(request.user, execution_id)
    return CancelOut(
        id=execution.id,
        status=ExecutionStatus(execution.status),
        cancel_requested=execution.cancel_requested_at is not None,
    )

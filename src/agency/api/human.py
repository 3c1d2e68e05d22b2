"""`/human-requests`: what executions want of people, and their answers."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from ninja import Query, Router
from pydantic import BaseModel, Field

from agency.api.body import only_known
from agency.api.executions import execution_of
from agency.api.human_schemas import Answers, AskAgain, AskAgainOut, HumanRequestOut, HumanRequestPage
from agency.api.pagination import LIMIT, MAX_LIMIT, page
from agency.api.problems import BadRequest
from agency.enums import HumanRequestKind, HumanRequestStatus
from agency.execution import answering
from agency.models import HumanRequest, visible_to

router = Router()
executions = Router()


class Filters(BaseModel):
    """What the list can be narrowed to."""

    status: HumanRequestStatus | None = None
    kind: HumanRequestKind | None = None
    execution: UUID | None = None
    cursor: str | None = None
    limit: int = Field(LIMIT, ge=1, le=MAX_LIMIT)


def _visible(user: Any) -> QuerySet[HumanRequest]:
    rows = HumanRequest.objects.select_related("execution__agent").prefetch_related("items__decided_by")
    return visible_to(user, rows)


def request_of(user: Any, request_id: UUID) -> HumanRequest:
    """The human request with this id among those that `user` may see, else 404."""
    found = _visible(user).filter(pk=request_id).first()
    if found is None:
        raise Http404(f"There is no human request {request_id}, or you may not see it.")
    return found


@router.get(
    "", response=HumanRequestPage, operation_id="list_human_requests", summary="Requests, newest first"
)
def list_requests(request: HttpRequest, filters: Query[Filters]) -> Any:
    only_known(request, *Filters.model_fields)
    named = {"status": filters.status, "kind": filters.kind, "execution_id": filters.execution}
    rows = _visible(request.user).filter(
        **{name: value for name, value in named.items() if value is not None}
    )
    return page(rows, filters.cursor, filters.limit, HumanRequestOut.of)


@router.get(
    "/{request_id}", response=HumanRequestOut, operation_id="get_human_request", summary="One request"
)
def get_request(request: HttpRequest, request_id: UUID) -> Any:
    only_known(request)
    return HumanRequestOut.of(request_of(request.user, request_id))


@router.post(
    "/{request_id}/answer",
    response=HumanRequestOut,
    operation_id="answer_human_request",
    summary="Decide on calls of a request",
)
def answer(request: HttpRequest, request_id: UUID, answers: Answers) -> Any:
    """The execution goes on when every call is decided; that may be done in parts.

    The first answer wins: a later one, also the same again, gets 409 with the request as it stands in
    `request`. So does an answer whose `digest` is not that of the call as it is now.
    """
    only_known(request)
    found = request_of(request.user, request_id)
    answered = answering.answer(found.pk, [one.given() for one in answers.items], request.user)
    shown = HumanRequestOut.of(request_of(request.user, request_id))
    if answered.refused is not None:
        raise BadRequest(409, "answered-already", answered.refused, more={"request": shown})
    return shown


@executions.post(
    "/{execution_id}/ask-again",
    response=AskAgainOut,
    operation_id="ask_again",
    summary="Have calls of a tool ask again that were allowed for the whole execution",
)
def ask_again(request: HttpRequest, execution_id: UUID, order: AskAgain) -> Any:
    """`revoked` is false if calls of the tool ask anyway. What was begun before stays as it is."""
    only_known(request)
    execution = execution_of(request.user, execution_id)
    return AskAgainOut(tool=order.tool, revoked=answering.allow_no_longer(execution, order.tool))

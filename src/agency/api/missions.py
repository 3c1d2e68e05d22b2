"""`/missions`: make, list, read, change, remove and dispatch."""

from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Query, Router, Status
from pydantic import BaseModel, Field

from agency.api.agents import agent_of
from agency.api.body import only_known
from agency.api.executions import IdempotencyKey, execution_of
from agency.api.human_schemas import AskAgain, AskAgainOut
from agency.api.mission_schemas import MissionChange, MissionOrder, MissionOut, MissionPage
from agency.api.pagination import LIMIT, MAX_LIMIT, page
from agency.api.problems import BadRequest, invalid
from agency.api.schemas import ExecutionOut
from agency.mission import allowing, missions, service
from agency.models import ConfiguredAgent, Mission, visible_to

router = Router()


class Filters(BaseModel):
    """What the list can be narrowed to; `archived` shows those that were removed instead."""

    agent: UUID | None = None
    archived: bool = False
    cursor: str | None = None
    limit: int = Field(LIMIT, ge=1, le=MAX_LIMIT)


def mission_of(user: Any, mission_id: UUID) -> Mission:
    """The mission with this id among those that `user` may see, else 404."""
    mission = visible_to(user, Mission.objects.select_related("agent")).filter(pk=mission_id).first()
    if mission is None:
        raise Http404(f"There is no mission {mission_id}, or you may not see it.")
    return mission


@router.get("", response=MissionPage, operation_id="list_missions", summary="Missions, newest first")
def list_missions(request: HttpRequest, filters: Query[Filters]) -> Any:
    only_known(request, *Filters.model_fields)
    rows = visible_to(request.user, Mission.objects.filter(archived_at__isnull=not filters.archived))
    if filters.agent is not None:
        rows = rows.filter(agent_id=filters.agent)
    return page(rows, filters.cursor, filters.limit, MissionOut.of)


@router.post("", response={201: MissionOut}, operation_id="create_mission", summary="Create a mission")
def create(request: HttpRequest, response: HttpResponse, order: MissionOrder) -> Any:
    only_known(request)
    fields = order.model_dump() | {"agent": _agent(request, order.agent)}
    mission = missions.create(request.user, **fields)
    response["Location"] = reverse(f"{request.resolver_match.namespace}:get_mission", args=[mission.id])
    return Status(201, MissionOut.of(mission))


@router.get("/{mission_id}", response=MissionOut, operation_id="get_mission", summary="One mission")
def get_mission(request: HttpRequest, mission_id: UUID) -> Any:
    """One that was removed is still shown, since executions lead to it; it has `archived_at`."""
    only_known(request)
    return MissionOut.of(mission_of(request.user, mission_id))


@router.patch("/{mission_id}", response=MissionOut, operation_id="update_mission", summary="Change a mission")
def update(request: HttpRequest, mission_id: UUID, change: MissionChange) -> Any:
    """Changes count for later dispatches. One that was removed gives 409."""
    only_known(request)
    mission = mission_of(request.user, mission_id)
    fields = change.model_dump(exclude_unset=True)
    if "agent" in fields:
        fields["agent"] = _agent(request, change.agent)
    changed = missions.update(mission, **fields)
    if changed.refused is not None:
        raise BadRequest(409, "removed", changed.refused)
    return MissionOut.of(changed.mission)


@router.delete(
    "/{mission_id}", response={204: None}, operation_id="remove_mission", summary="Remove a mission"
)
def remove(request: HttpRequest, mission_id: UUID) -> Any:
    """Its executions stay and go on, its schedules are paused; it is in no list and takes no dispatch."""
    only_known(request)
    missions.remove(mission_of(request.user, mission_id))
    return Status(204, None)


@router.post(
    "/{mission_id}/dispatch",
    response={202: ExecutionOut, 200: ExecutionOut},
    operation_id="dispatch_mission",
    summary="Start an execution of a mission",
)
def dispatch(
    request: HttpRequest, response: HttpResponse, mission_id: UUID, idempotency_key: IdempotencyKey = None
) -> Any:
    """Accepted with 202 and run in the background; `Location` is where to follow it.

    The execution keeps the mission as it is now. The same `Idempotency-Key` gives the same execution (200).
    """
    only_known(request)
    mission = mission_of(request.user, mission_id)
    with transaction.atomic():
        held = missions.locked_to_dispatch(mission)
        if held is None:
            raise BadRequest(409, "removed", missions.REMOVED)
        submission = service.dispatch(held, owner=request.user, idempotency_key=idempotency_key)
    execution = execution_of(request.user, submission.execution.id)
    location = reverse(f"{request.resolver_match.namespace}:get_execution", args=[execution.id])
    response["Location"] = location
    return Status(202 if submission.created else 200, ExecutionOut.of(execution))


@router.post(
    "/{mission_id}/ask-again",
    response=AskAgainOut,
    operation_id="ask_again_in_mission",
    summary="Have calls of a tool ask again that were allowed for all of a mission",
)
def ask_again(request: HttpRequest, mission_id: UUID, order: AskAgain) -> Any:
    """It counts at once, in running executions too; `revoked` is false if the mission allows no such calls.

    What was allowed for one execution is taken back there.
    """
    only_known(request)
    revoked = allowing.revoke(mission_of(request.user, mission_id), order.tool)
    return AskAgainOut(tool=order.tool, revoked=revoked)


def _agent(request: HttpRequest, agent_id: UUID) -> ConfiguredAgent:
    try:
        return agent_of(request.user, agent_id)
    except Http404 as exc:
        raise invalid(str(exc), "agent") from exc

"""`/missions/{id}/schedules`: when a mission is dispatched by itself."""

from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Query, Router, Status

from agency.api.body import only_known
from agency.api.missions import mission_of
from agency.api.problems import BadRequest
from agency.api.schedule_schemas import ScheduleChange, ScheduleOrder, ScheduleOut, SlotOut
from agency.mission import missions, schedules
from agency.models import Schedule

router = Router()
ONE = "/{mission_id}/schedules/{schedule_id}"


def schedule_of(user: Any, mission_id: UUID, schedule_id: UUID) -> Schedule:
    """The schedule of a mission that `user` may see, else 404."""
    rows = mission_of(user, mission_id).schedules.select_related("mission")
    schedule = rows.filter(pk=schedule_id).first()
    if schedule is None:
        raise Http404(f"There is no schedule {schedule_id} of this mission.")
    return schedule


@router.get(
    "/{mission_id}/schedules",
    response=list[ScheduleOut],
    operation_id="list_schedules",
    summary="The schedules of a mission, oldest first",
)
def list_schedules(request: HttpRequest, mission_id: UUID) -> Any:
    only_known(request)
    rows = mission_of(request.user, mission_id).schedules.order_by("created_at", "id")
    return [ScheduleOut.of(row) for row in rows]


@router.post(
    "/{mission_id}/schedules",
    response={201: ScheduleOut},
    operation_id="create_schedule",
    summary="Dispatch a mission by a cron expression",
)
def create(request: HttpRequest, response: HttpResponse, mission_id: UUID, order: ScheduleOrder) -> Any:
    only_known(request)
    mission = mission_of(request.user, mission_id)
    with transaction.atomic():
        held = missions.locked_to_dispatch(mission)
        if held is None:
            raise BadRequest(409, "removed", missions.REMOVED)
        schedule = schedules.create_schedule(held, **order.model_dump())
    schedule.refresh_from_db()
    name = f"{request.resolver_match.namespace}:get_schedule"
    response["Location"] = reverse(name, args=[mission.id, schedule.id])
    return Status(201, ScheduleOut.of(schedule))


@router.get(ONE, response=ScheduleOut, operation_id="get_schedule", summary="One schedule")
def get_schedule(request: HttpRequest, mission_id: UUID, schedule_id: UUID) -> Any:
    only_known(request)
    return ScheduleOut.of(schedule_of(request.user, mission_id, schedule_id))


@router.patch(ONE, response=ScheduleOut, operation_id="update_schedule", summary="Change a schedule")
def update(request: HttpRequest, mission_id: UUID, schedule_id: UUID, change: ScheduleChange) -> Any:
    """With another `cron` or `time_zone` the next slot is the first from now on."""
    only_known(request)
    schedule = schedule_of(request.user, mission_id, schedule_id)
    return ScheduleOut.of(schedules.update_schedule(schedule, **change.model_dump(exclude_unset=True)))


@router.delete(ONE, response={204: None}, operation_id="delete_schedule", summary="Delete a schedule")
def delete(request: HttpRequest, mission_id: UUID, schedule_id: UUID) -> Any:
    """What it has dispatched goes on."""
    only_known(request)
    schedules.delete(schedule_of(request.user, mission_id, schedule_id))
    return Status(204, None)


@router.post(f"{ONE}/pause", response=ScheduleOut, operation_id="pause_schedule", summary="Pause a schedule")
def pause(request: HttpRequest, mission_id: UUID, schedule_id: UUID) -> Any:
    """No slot until it is resumed; what it has dispatched goes on."""
    only_known(request)
    return ScheduleOut.of(schedules.pause(schedule_of(request.user, mission_id, schedule_id)))


@router.post(
    f"{ONE}/resume", response=ScheduleOut, operation_id="resume_schedule", summary="Resume a schedule"
)
def resume(request: HttpRequest, mission_id: UUID, schedule_id: UUID) -> Any:
    """It goes on with the first slot from now on; what passed meanwhile is not caught up."""
    only_known(request)
    schedule = schedule_of(request.user, mission_id, schedule_id)
    if schedule.mission.archived_at is not None:
        raise BadRequest(409, "removed", missions.REMOVED)
    return ScheduleOut.of(schedules.resume(schedule))


@router.get(
    f"{ONE}/slots", response=list[SlotOut], operation_id="list_slots", summary="What became of past slots"
)
def list_slots(
    request: HttpRequest, mission_id: UUID, schedule_id: UUID, limit: int = Query(50, ge=1, le=1000)
) -> Any:
    """The newest ones first."""
    only_known(request, "limit")
    rows = schedule_of(request.user, mission_id, schedule_id).slots.order_by("-slot_at")[:limit]
    return [SlotOut.of(row) for row in rows]

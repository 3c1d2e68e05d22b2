"""What people and other systems tell a running mission: go on for longer, go on now, or a signal."""

from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Path, Router, Status
from pydantic import BaseModel

from agency.api.body import StrictParser, only_known
from agency.api.executions import execution_of
from agency.api.mission_schemas import ExtendOrder
from agency.api.problems import BadRequest
from agency.api.schemas import ExecutionOut
from agency.mission import extending, signals, waiting
from agency.mission.decision import LONGEST_SIGNAL

router = Router()
ANY_JSON = {"required": False, "content": {"application/json": {"schema": {}}}}


class SignalOut(BaseModel):
    """A signal that was stored; `ended_wait` if the mission waited for it and goes on now."""

    id: UUID
    name: str
    ended_wait: bool


@router.post(
    "/{execution_id}/extend",
    response=ExecutionOut,
    operation_id="extend_execution",
    summary="Grant more iterations to a mission that has used up its own",
)
def extend(request: HttpRequest, execution_id: UUID, order: ExtendOrder) -> Any:
    """It is due at once, and goes on where it was left. In any other state: 409."""
    only_known(request)
    execution = execution_of(request.user, execution_id)
    extended = extending.extend(execution, order.iterations, request.user, generation=order.generation)
    return _shown(request, execution_id, extended.refused)


@router.post(
    "/{execution_id}/resume",
    response=ExecutionOut,
    operation_id="resume_execution",
    summary="End a mission's wait now",
)
def resume(request: HttpRequest, execution_id: UUID) -> Any:
    """Ends a wait of any kind, and the pause between two iterations. 409 if there is nothing to end.

    What waits for a person is answered instead, under `/human-requests`.
    """
    only_known(request)
    resumed = waiting.run_now(execution_of(request.user, execution_id), request.user)
    return _shown(request, execution_id, resumed.refused)


@router.post(
    "/{execution_id}/signals/{name}",
    response={202: SignalOut},
    operation_id="send_signal",
    summary="Tell a mission something that it may wait for",
    openapi_extra={"requestBody": ANY_JSON},
)
def send_signal(
    request: HttpRequest,
    execution_id: UUID,
    name: Annotated[str, Path(min_length=1, max_length=LONGEST_SIGNAL)],
) -> Any:
    """The body is any JSON of at most 64 kB, or nothing; the agent gets it as data.

    A signal that nothing waits for yet is kept for the next wait of its name. 409 if the execution has ended
    or never waits.
    """
    only_known(request)
    execution = execution_of(request.user, execution_id)
    payload = StrictParser().parse_body(request) if request.body else None
    sent = signals.send(execution, name, payload, request.user)
    if sent.signal is None:
        raise BadRequest(409, "conflict", sent.refused or "")
    return Status(202, SignalOut(id=sent.signal.pk, name=sent.signal.name, ended_wait=sent.ended_wait))


def _shown(request: HttpRequest, execution_id: UUID, refused: str | None) -> ExecutionOut:
    if refused is not None:
        raise BadRequest(409, "conflict", refused)
    return ExecutionOut.of(execution_of(request.user, execution_id))

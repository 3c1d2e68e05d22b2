"""`/completion-checks` and `/watches`: what the project has declared for missions to name."""

from typing import Any

from django.http import HttpRequest
from ninja import Router
from pydantic import BaseModel

from agency.api.body import only_known
from agency.mission.completion import registry as completion
from agency.mission.watches import registry as watches

router = Router()


class DeclaredOut(BaseModel):
    """One that a mission can name, with what it is for."""

    name: str
    description: str


@router.get(
    "/completion-checks",
    response=list[DeclaredOut],
    operation_id="list_completion_checks",
    summary="What a mission's `completion_checks` can name",
)
def list_checks(request: HttpRequest) -> Any:
    only_known(request)
    return [DeclaredOut(name=name, description=text) for name, text in completion.described().items()]


@router.get(
    "/watches",
    response=list[DeclaredOut],
    operation_id="list_watches",
    summary="Conditions that missions can wait for",
)
def list_watches(request: HttpRequest) -> Any:
    only_known(request)
    found = [watches.get_watch(name) for name in watches.names()]
    return [DeclaredOut(name=watch.NAME, description=watch.DESCRIPTION.strip()) for watch in found]

"""The REST API, put together: routers, authentication, problem details, OpenAPI."""

from typing import Any

from django.urls import URLPattern, re_path
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.renderers import JSONRenderer

from agency.api import agents, declared, definitions, executions, human, loops, missions, problems, schedules
from agency.api.auth import BearerToken, Session
from agency.api.body import StrictParser, guarded
from agency.api.openapi import completed


class Renderer(JSONRenderer):
    """JSON as RFC 8259 has it: UTF-8, no NaN."""

    json_dumps_params = {"allow_nan": False, "ensure_ascii": False}


class AgencyAPI(NinjaAPI):
    """django-ninja's API with problem details for every answer that is an error, 404 and 405 included."""

    def _get_urls(self) -> list[Any]:
        urls = super()._get_urls()
        for pattern in urls:
            if isinstance(pattern, URLPattern):
                pattern.callback = guarded(pattern.callback)
        return [*urls, re_path(r"", problems.no_such_page)]

    def get_openapi_schema(self, **where: Any) -> OpenAPISchema:
        return completed(super().get_openapi_schema(**where))


api = AgencyAPI(
    title="agency",
    version="1",
    description=(
        "Hand an agent a job and walk away: submit executions, follow them, read what became of them. "
        "Errors are problem details (RFC 9457); what you may not see is 404."
    ),
    urls_namespace="agency-api",
    auth=[BearerToken(), Session()],
    parser=StrictParser(),
    renderer=Renderer(),
)
problems.install(api)
api.add_router("/agents", agents.router, tags=["agents"])
api.add_router("/definitions", definitions.router, tags=["definitions"])
api.add_router("/executions", executions.router, tags=["executions"])
api.add_router("/executions", loops.router, tags=["missions"])
api.add_router("/executions", human.executions, tags=["human requests"])
api.add_router("/missions", missions.router, tags=["missions"])
api.add_router("/missions", schedules.router, tags=["schedules"])
api.add_router("", declared.router, tags=["missions"])
api.add_router("/human-requests", human.router, tags=["human requests"])

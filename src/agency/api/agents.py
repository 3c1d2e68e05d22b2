"""`/agents`: the caller's configured agents and what each can be asked to do."""

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Query, Router, Status

from agency.api.body import only_known
from agency.api.definitions import shown
from agency.api.pagination import LIMIT, MAX_LIMIT, page
from agency.api.problems import BadRequest
from agency.api.schemas import AgentOrder, AgentOut, AgentPage, DefinitionOut
from agency.execution import registry
from agency.execution.agents import create_agent, remove_agent
from agency.models import ConfiguredAgent, visible_to

router = Router()


def agent_of(user: Any, agent_id: UUID) -> ConfiguredAgent:
    """The agent with this id among those that `user` may see, else 404."""
    agent = visible_to(user, ConfiguredAgent.objects.all()).filter(pk=agent_id).first()
    if agent is None:
        raise Http404(f"There is no agent {agent_id}, or you may not see it.")
    return agent


@router.get("", response=AgentPage, operation_id="list_agents", summary="Your agents, newest first")
def list_agents(
    request: HttpRequest,
    cursor: str | None = None,
    limit: int = Query(LIMIT, ge=1, le=MAX_LIMIT),
) -> Any:
    only_known(request, "cursor", "limit")
    return page(visible_to(request.user, ConfiguredAgent.objects.all()), cursor, limit, AgentOut.of)


@router.post("", response={201: AgentOut}, operation_id="create_agent", summary="Configure an agent")
def create(request: HttpRequest, response: HttpResponse, order: AgentOrder) -> Any:
    agent = create_agent(request.user, **order.model_dump())
    response["Location"] = reverse(f"{request.resolver_match.namespace}:get_agent", args=[agent.id])
    return Status(201, AgentOut.of(agent))


@router.get("/{agent_id}", response=AgentOut, operation_id="get_agent", summary="One agent")
def get_agent(request: HttpRequest, agent_id: UUID) -> Any:
    only_known(request)
    return AgentOut.of(agent_of(request.user, agent_id))


@router.delete("/{agent_id}", response={204: None}, operation_id="delete_agent", summary="Delete an agent")
def delete_agent(request: HttpRequest, agent_id: UUID) -> Any:
    """One that missions or executions use stays: 409."""
    only_known(request)
    refused = remove_agent(agent_of(request.user, agent_id))
    if refused is not None:
        raise BadRequest(409, "in-use", refused)
    return Status(204, None)


@router.get(
    "/{agent_id}/definitions",
    response=list[DefinitionOut],
    operation_id="list_agent_definitions",
    summary="The execution types of an agent",
)
def list_agent_definitions(request: HttpRequest, agent_id: UUID) -> Any:
    only_known(request)
    agent = agent_of(request.user, agent_id)
    return [shown(definition) for definition in registry.definitions_for(agent.agent_key)]

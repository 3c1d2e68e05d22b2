"""`/definitions`: what can be ordered, with input schema and failure codes."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from agency.api.body import only_known
from agency.api.schemas import DefinitionOut
from agency.execution import registry
from agency.execution.failure import failure_codes

router = Router()


@router.get("", response=list[DefinitionOut], operation_id="list_definitions", summary="All execution types")
def list_definitions(request: HttpRequest) -> Any:
    only_known(request)
    return [shown(definition) for definition in registry.all_definitions()]


def shown(definition: Any) -> DefinitionOut:
    return DefinitionOut(
        execution_key=definition.EXECUTION_KEY,
        agent_key=definition.AGENT_KEY,
        name=definition.NAME,
        description=definition.DESCRIPTION,
        max_attempts=1 + definition.MAX_RETRIES,
        input_schema=definition.INPUT_TYPE.model_json_schema(),
        failure_codes=failure_codes(definition.FAILURE_CODES),
    )

"""Between our words and pydantic-ai's: parameters out, responses in; `transcript` has the history. No I/O.

What a vendor wants back verbatim (thinking with its signature, item ids) travels in a `ProviderPart`
before the item it belongs to and is given to the same vendor only.
"""

import json
from typing import Any

from pydantic_ai.messages import (
    InstructionPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from agency.agent.events import ContentItem, Message, ProviderPart, ToolCall, Usage
from agency.agent.llm import FinishReason, LlmRequest, LlmResponse
from agency.agent.providers.transcript import response_parts
from agency.errors import ModelOutputInvalid, ModelRefused

FINAL = "final_answer"
_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "tool_call": "tool_calls",
    "length": "length",
    "content_filter": "refusal",
    "error": "error",
}


def to_parameters(request: LlmRequest, *, native: bool) -> ModelRequestParameters:
    """Instructions, tools, output shape: a forced tool where the vendor has no `native` schemas.

    They are kept from one request to the next, since they seldom change within a run.
    """
    told = ([*request.instructions], [*request.tools], request.output_schema)
    known, parameters = request.kept.get((to_parameters, native), (None, None))
    if known != told:
        parameters = _parameters(request, native)
        request.kept[to_parameters, native] = (told, parameters)
    return parameters


def _parameters(request: LlmRequest, native: bool) -> ModelRequestParameters:
    instructions = "\n\n".join(text for text in request.instructions if text)
    parameters = ModelRequestParameters(
        instruction_parts=[InstructionPart(content=instructions)] if instructions else [],
        function_tools=[
            ToolDefinition(
                name=tool.name, description=tool.description, parameters_json_schema=tool.parameters
            )
            for tool in request.tools
        ],
    )
    wanted = request.output_schema
    if wanted is None:
        return parameters
    if native:
        parameters.output_mode = "native"
        parameters.output_object = OutputObjectDefinition(
            json_schema=wanted.schema, name=wanted.name, description=wanted.description
        )
        return parameters
    parameters.output_mode = "tool"
    parameters.allow_text_output = False
    parameters.output_tools = [
        ToolDefinition(
            name=FINAL,
            description=wanted.description or "Give the final answer.",
            parameters_json_schema=wanted.schema,
            kind="output",
        )
    ]
    return parameters


def from_response(response: ModelResponse, request: LlmRequest, system: str, model: str) -> LlmResponse:
    """Our response; a filtered one is a `ModelRefused`, a failed one a `ModelOutputInvalid`."""
    reason = _REASONS.get(response.finish_reason or "")
    if reason == "refusal":
        raise ModelRefused(f"{model}: the answer was withheld by the provider's content filter")
    content = [item for part in response.parts for item in _items(part, request, system)]
    if reason == "error":
        raise ModelOutputInvalid(f"{model}: the provider reported a failed answer")
    if any(isinstance(item, ToolCall) for item in content):
        reason = "length" if reason == "length" else "tool_calls"
    elif reason == "tool_calls":
        reason = "stop"
    return LlmResponse(content, _usage(response), reason, response.model_name or model)


def _items(part: ModelResponsePart, request: LlmRequest, system: str) -> list[ContentItem]:
    if isinstance(part, TextPart):
        said: list[ContentItem] = [Message(role="assistant", content=part.content)] if part.content else []
        return _annotated(part, {"text": True}, said, system)
    if isinstance(part, ToolCallPart):
        return _call_items(part, request, system)
    if isinstance(part, ThinkingPart) or part.has_content():
        dumped: dict[str, Any] = response_parts.dump_python(part, mode="json", exclude_none=True)
        return [ProviderPart(provider=system, data={"part": dumped})]
    return []


def _call_items(part: ToolCallPart, request: LlmRequest, system: str) -> list[ContentItem]:
    arguments, invalid = _arguments(part.args)
    if request.output_schema and part.tool_name == FINAL and FINAL not in {t.name for t in request.tools}:
        raw = invalid if invalid is not None else json.dumps(arguments, ensure_ascii=False)
        return [Message(role="assistant", content=raw)]
    call = ToolCall(tool_call_id=part.tool_call_id, name=part.tool_name, arguments=arguments, invalid=invalid)
    return _annotated(part, {"tool_call_id": part.tool_call_id}, [call], system)


def _annotated(
    part: TextPart | ToolCallPart, key: dict[str, Any], items: list[ContentItem], system: str
) -> list[ContentItem]:
    """The items, preceded by what the vendor attached to the part and wants back with it."""
    if not items or not (part.id or part.provider_details):
        return items
    data = {
        **key,
        "id": part.id,
        "provider_name": part.provider_name,
        "provider_details": part.provider_details,
    }
    return [ProviderPart(provider=system, data=json.loads(json.dumps(data, default=str))), *items]


def _arguments(raw: str | dict[str, Any] | None) -> tuple[dict[str, Any], str | None]:
    if isinstance(raw, dict):
        return raw, None
    if raw is None or not raw.strip():
        return {}, None
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return {}, raw
    return (value, None) if isinstance(value, dict) else ({}, raw)


def _usage(response: ModelResponse) -> Usage:
    used = response.usage
    return Usage(
        model_calls=1,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cached_tokens=used.cache_read_tokens,
        cost=_cost(response),
    )


def _cost(response: ModelResponse) -> float | None:
    """US dollars; `None` for a model or an endpoint whose price is not known."""
    if not response.model_name:
        return None
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError):
        return None

"""Hosted models through pydantic-ai's model layer: one adapter for every vendor.

Requests run on the background loop over one connection pool per process, once each: retries belong to
the caller. No other module knows a vendor's SDK.
"""

from typing import TYPE_CHECKING, Any

from agency.agent import background
from agency.agent.llm import LlmRequest, LlmResponse
from agency.agent.providers import translate, vendor_errors, vendor_models
from agency.errors import ModelUnavailable

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters

TIMEOUT = 300.0
_MARGIN = 10.0


class VendorClient:
    """A client for `provider:model`; SDK and connection are set up at the first request.

    Settings are pydantic-ai's (`max_tokens`, `temperature`, `seed`, `thinking`, ...), and `timeout`: seconds
    for the whole request (300).
    """

    def __init__(self, provider: str, model: str) -> None:
        self.provider = provider
        self.model_name = f"{provider}:{model}"
        self._name = model

    @property
    def model(self) -> "Model":
        """pydantic-ai's model, which every client of the same name shares."""
        return vendor_models.build(self.provider, self._name)

    @property
    def output_mode(self) -> str:
        """`native` where the vendor constrains answers to a schema itself, else `tool`."""
        return "native" if self.model.profile.get("supports_json_schema_output") else "tool"

    def generate(self, request: LlmRequest) -> LlmResponse:
        """Ask once. Raises the `ModelError` family, whose messages never hold a key."""
        model = self.model
        system = model.system
        messages = translate.to_messages(request, system)
        parameters = translate.to_parameters(request, native=self.output_mode == "native")
        settings = dict(request.settings)
        timeout = float(settings.pop("timeout", None) or TIMEOUT)
        settings.update(request_timeout=timeout, max_retries=0)
        if request.tools and request.tool_choice != "auto":
            settings["tool_choice"] = request.tool_choice
        try:
            response = background.run(
                _request(model, messages, settings, parameters), timeout=timeout + _MARGIN
            )
        except TimeoutError:
            raise ModelUnavailable(f"{self.model_name}: no answer within {timeout:g} s") from None
        except vendor_errors.expected() as exc:
            raise vendor_errors.translate(exc, self.model_name) from None
        return translate.from_response(response, request, system, self.model_name)


async def _request(
    model: "Model",
    messages: "list[ModelMessage]",
    settings: dict[str, Any],
    parameters: "ModelRequestParameters",
) -> "ModelResponse":
    from pydantic_ai import direct
    from pydantic_ai.settings import ModelSettings

    return await direct.model_request(
        model, messages, model_settings=ModelSettings(**settings), model_request_parameters=parameters
    )

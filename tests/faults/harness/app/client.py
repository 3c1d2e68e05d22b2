"""The client of the fake provider: what a provider's adapter does, without a vendor's library."""

import json
import os
from typing import Any

from pydantic_core import to_json

from agency.agent import LlmRequest, LlmResponse, Message, ToolCall, Usage
from agency.errors import ModelUnavailable
from tests.faults.harness.app.wire import post

PROVIDER = "AGENCY_HARNESS_PROVIDER"
PATIENCE = "AGENCY_HARNESS_PATIENCE"


class ProviderClient:
    output_mode = "tool"
    model_name = "harness:model"

    def __init__(self) -> None:
        self._address = os.environ[PROVIDER]
        self._patience = float(os.environ.get(PATIENCE, "30"))

    def generate(self, request: LlmRequest) -> LlmResponse:
        try:
            status, headers, body = post(
                self._address, "/generate", to_json({"contents": request.contents}), {}, self._patience
            )
        except OSError as exc:
            raise ModelUnavailable(f"the provider cannot be reached: {exc}") from exc
        if status != 200:
            asked = {name.lower(): value for name, value in headers.items()}.get("retry-after")
            wait = float(asked) if asked else None
            raise ModelUnavailable(f"the provider answers {status}", wait, is_limit=status == 429)
        try:
            return _response(json.loads(body))
        except (ValueError, KeyError) as exc:
            raise ModelUnavailable(f"the provider's answer cannot be read: {exc}") from exc


def _response(answer: dict[str, Any]) -> LlmResponse:
    item = (
        ToolCall(tool_call_id=answer["id"], name=answer["tool"], arguments=answer["arguments"])
        if "tool" in answer
        else Message(role="assistant", content=answer["text"])
    )
    return LlmResponse([item], Usage(model_calls=1, input_tokens=10, output_tokens=5))


def client(model: str) -> ProviderClient:
    """`AGENCY["LLM_CLIENT_FACTORY"]` of the harness."""
    return ProviderClient()

"""Models addressed as `"provider:model"`. The provider is loaded with the first request, not before."""

from functools import cached_property
from typing import Any

from agency.agent.llm import LlmClient, LlmRequest, LlmResponse
from agency.errors import ConfigurationError


class NamedModel:
    """A client known by name only; stands for the provider's client until that is needed."""

    def __init__(self, name: str) -> None:
        provider, _, model = name.partition(":")
        if not provider or not model:
            raise ConfigurationError(
                f"model is {name!r}; write 'provider:model', such as 'openai:gpt-5-mini'"
            )
        self.name = name

    def generate(self, request: LlmRequest) -> LlmResponse:
        return self.client.generate(request)

    @cached_property
    def client(self) -> LlmClient:
        from agency.agent.providers import resolve_model

        return resolve_model(self.name)

    @property
    def stream(self) -> Any:
        """The client's own `stream`, or `None` if it has none."""
        return getattr(self.client, "stream", None)

    @property
    def model_name(self) -> str:
        return self.name

    @property
    def output_mode(self) -> Any:
        return getattr(self.client, "output_mode", "tool")

    @property
    def takes_probes(self) -> bool:
        return getattr(self.client, "takes_probes", False)


def as_client(model: LlmClient | str) -> LlmClient:
    """A client from either way to name a model; anything else is refused by name."""
    if isinstance(model, str):
        return NamedModel(model)
    if not callable(getattr(model, "generate", None)):
        raise ConfigurationError(f"model is {model!r}; give a 'provider:model' or an object with generate()")
    return model

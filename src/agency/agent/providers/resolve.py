"""The table of providers: which code answers for the part of a model's name before the colon."""

import importlib
from collections.abc import Callable
from typing import Any, cast

from agency.agent.llm import LlmClient
from agency.errors import ConfigurationError


def resolve_model(name: str) -> LlmClient:
    """The client for `"provider:model"`, such as `openai:gpt-6-luna`, `local:default`.

    Raises `ConfigurationError` for an unknown provider or a missing key; a missing package is found at the
    first request, since loading it takes long.
    """
    provider, _, model = name.partition(":")
    if provider not in PROVIDERS or not model:
        raise ConfigurationError(
            f"{name!r} is not a model: write provider:model with one of {', '.join(PROVIDERS)}. "
            "Providers are installed as extras, such as `pip install 'agency-django[anthropic]'`."
        )
    return PROVIDERS[provider](provider, model)


def _vendor(provider: str, model: str) -> LlmClient:
    from agency.agent.providers import vendor_models
    from agency.agent.providers.vendor import VendorClient

    vendor_models.require(provider)
    return VendorClient(provider, model)


def _local(provider: str, model: str) -> LlmClient:
    from agency.agent.providers.local_client import LocalClient

    return LocalClient(model)


def _scripted(provider: str, target: str) -> LlmClient:
    """`scripted:package.module:attribute`: a client, or a function without arguments that makes one."""
    module, _, attribute = target.partition(":")
    try:
        found: Any = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as exc:
        raise ConfigurationError(f"scripted:{target} cannot be loaded: {exc}.") from exc
    client = found if hasattr(found, "generate") and not isinstance(found, type) else found()
    if not hasattr(client, "generate"):
        raise ConfigurationError(f"scripted:{target} is not a model client: it has no generate().")
    return cast("LlmClient", client)


PROVIDERS: dict[str, Callable[[str, str], LlmClient]] = {
    "openai": _vendor,
    "openai-compatible": _vendor,
    "anthropic": _vendor,
    "google": _vendor,
    "local": _local,
    "scripted": _scripted,
}

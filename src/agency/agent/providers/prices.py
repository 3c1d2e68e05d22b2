"""Says whether it is known what a model costs, by the list that its answers are priced by."""

import os
from collections.abc import Mapping

_URLS = {
    "openai": "OPENAI_BASE_URL",
    "openai-compatible": "AGENCY_MODEL_BASE_URL",
    "anthropic": "ANTHROPIC_BASE_URL",
    "google": "GOOGLE_GEMINI_BASE_URL",
}
"""The hosted providers, each with the variable that names another server of theirs."""


def is_price_known(name: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the answers of `"provider:model"` will have a cost in US dollars.

    True for models on this machine, which cost nothing, and for scripted ones, which say it themselves.
    """
    provider, _, model = name.partition(":")
    if provider not in _URLS or not model:
        return provider not in _URLS
    # Loads slowly, and only who caps money needs it.
    from pydantic_ai.messages import ModelResponse

    answer = ModelResponse(
        parts=[], model_name=model, provider_name=provider, provider_url=environ.get(_URLS[provider]) or None
    )
    try:
        answer.cost()
    except (LookupError, ValueError):
        return False
    return True

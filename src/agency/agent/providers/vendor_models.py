"""Builds pydantic-ai's model for a provider from the environment: key, base URL, shared connections."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agency.errors import ConfigurationError

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model

CONNECT_SECONDS = 10.0
_READ_SECONDS = 600.0
_EXTRAS = {"openai-compatible": "openai"}
_READ = (
    "OPENAI_BASE_URL", "OPENAI_API_KEY", "AGENCY_MODEL_BASE_URL", "AGENCY_MODEL_API_KEY",
    "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_API_KEY", "GEMINI_API_KEY",
)  # fmt: skip
_pools: "dict[int, httpx2.AsyncClient]" = {}
_models: "dict[tuple[str | int | None, ...], Model]" = {}


_NEEDED = {
    "openai": ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "openai-compatible": ("AGENCY_MODEL_BASE_URL",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
}
"""Provider -> variables one of which must be set; the first is the usual one."""


def require(provider: str, environ: Mapping[str, str] = os.environ) -> None:
    """Raise the `ConfigurationError` of a missing key or URL at once, loading nothing of a vendor."""
    if not any(environ.get(name) for name in _NEEDED[provider]):
        _missing(_NEEDED[provider][0], provider)


def build(provider: str, model: str, environ: Mapping[str, str] = os.environ) -> "Model":
    """The model, or a `ConfigurationError` that says which package or variable is missing.

    Made once a process for the same name and the same environment.
    """
    wanted = (os.getpid(), provider, model, *(environ.get(name) for name in _READ))
    if wanted not in _models:
        _models[wanted] = _built(provider, model, environ)
    return _models[wanted]


def _built(provider: str, model: str, environ: Mapping[str, str]) -> "Model":
    try:
        return _BUILDERS[provider](model, environ)
    except ImportError as exc:
        extra = _EXTRAS.get(provider, provider)
        raise ConfigurationError(
            f"{provider} models need a package that is not installed ({exc.name or exc}): run "
            f"`pip install 'agency-django[{extra}]'`."
        ) from exc


def _openai(model: str, environ: Mapping[str, str]) -> "Model":
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    base_url = environ.get("OPENAI_BASE_URL") or None
    key = environ.get("OPENAI_API_KEY") or ("none" if base_url else _missing("OPENAI_API_KEY", "openai"))
    made = OpenAIProvider(base_url=base_url, api_key=key, http_client=pool())
    # Servers behind a URL of their own mostly speak chat completions only.
    return _chat(model, made) if base_url else OpenAIResponsesModel(model, provider=made)


def _openai_compatible(model: str, environ: Mapping[str, str]) -> "Model":
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    base_url = environ.get("AGENCY_MODEL_BASE_URL") or _missing("AGENCY_MODEL_BASE_URL", "openai-compatible")
    key = environ.get("AGENCY_MODEL_API_KEY") or "none"
    made = OpenAICompatibleProvider("openai-compatible", base_url=base_url, api_key=key, http_client=pool())
    return _chat(model, made)


def _chat(model: str, provider: Any) -> "Model":
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile

    # A stream that just ends would else pass for a whole answer.
    whole = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
    return OpenAIChatModel(model, provider=provider, profile=whole)


def _anthropic(model: str, environ: Mapping[str, str]) -> "Model":
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    key = environ.get("ANTHROPIC_API_KEY") or _missing("ANTHROPIC_API_KEY", "anthropic")
    base_url = environ.get("ANTHROPIC_BASE_URL") or None
    return AnthropicModel(
        model, provider=AnthropicProvider(api_key=key, base_url=base_url, http_client=pool())
    )


def _google(model: str, environ: Mapping[str, str]) -> "Model":
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    key = (
        environ.get("GOOGLE_API_KEY") or environ.get("GEMINI_API_KEY") or _missing("GOOGLE_API_KEY", "google")
    )
    base_url = environ.get("GOOGLE_GEMINI_BASE_URL") or None
    return GoogleModel(model, provider=GoogleProvider(api_key=key, base_url=base_url, http_client=pool()))


_BUILDERS = {
    "openai": _openai,
    "openai-compatible": _openai_compatible,
    "anthropic": _anthropic,
    "google": _google,
}


def _missing(variable: str, provider: str) -> str:
    raise ConfigurationError(
        f"{variable} is not set: export it to use {provider} models, or set AGENCY_MODEL to another model."
    )


def pool() -> "httpx2.AsyncClient":
    """The connections that every vendor client of this process shares (on the background loop)."""
    import httpx2

    pid = os.getpid()
    if pid not in _pools:
        _pools.clear()
        timeout = httpx2.Timeout(_READ_SECONDS, connect=CONNECT_SECONDS)
        _pools[pid] = httpx2.AsyncClient(timeout=timeout, follow_redirects=True)
    return _pools[pid]

"""Decides which model is used when nobody named one, and says why, without ever showing a key."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

DEFAULT_LOCAL = "local:default"

_KEYS = (
    ("OPENAI_API_KEY", "openai:gpt-6-luna"),
    ("ANTHROPIC_API_KEY", "anthropic:claude-haiku-5-5"),
    ("GOOGLE_API_KEY", "google:gemini-3.8-flash"),
    ("GEMINI_API_KEY", "google:gemini-3.8-flash"),
)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """`name` is `"provider:model"`; `reason` is a sentence fit to be printed."""

    name: str
    reason: str


def choose_model(environ: Mapping[str, str] = os.environ) -> ModelChoice:
    """AGENCY_MODEL, else the provider whose key is in the environment, else the local model."""
    if named := environ.get("AGENCY_MODEL", "").strip():
        return ModelChoice(named, f"AGENCY_MODEL names {named}.")
    for variable, model in _KEYS:
        if environ.get(variable, "").strip():
            return ModelChoice(
                model, f"{variable} is set, so {model} is used; set AGENCY_MODEL to choose another model."
            )
    return ModelChoice(
        DEFAULT_LOCAL, f"No AGENCY_MODEL and no provider key is set, so {DEFAULT_LOCAL} runs on this machine."
    )


def provider_of(model: str, environ: Mapping[str, str] = os.environ) -> str:
    """The part of a model's name before the colon; an empty name stands for the one that is chosen here."""
    return (model or choose_model(environ).name).partition(":")[0]

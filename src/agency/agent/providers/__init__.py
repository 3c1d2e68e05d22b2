"""From a name, `"provider:model"`, to a client that answers; nothing of a vendor is loaded before that."""

from agency.agent.providers.choice import ModelChoice, choose_model, provider_of
from agency.agent.providers.resolve import resolve_model

__all__ = ["ModelChoice", "choose_model", "provider_of", "resolve_model"]

"""The model: which one it is and why, and whether it can be had. Asks it nothing, so it costs nothing."""

import importlib.util
import os
import socket
from urllib.parse import urlsplit

from agency.agent.providers import choose_model, resolve_model
from agency.agent.providers.catalogue import weights_named
from agency.agent.providers.weights import cached, locate
from agency.cli.doctor.finding import Finding, fine, wrong
from agency.errors import ConfigurationError

CONNECT_SECONDS = 3.0
LOCAL = "local:"


def examine() -> list[Finding]:
    """The project's choice of model, and whether this machine can use it."""
    choice = choose_model(os.environ)
    try:
        usable = _local(choice.name) if choice.name.startswith(LOCAL) else _hosted(choice.name)
    except ConfigurationError as error:
        usable = wrong("Model", choice.name, str(error))
    return [fine("Model choice", choice.reason), usable]


def require(name: str = "") -> None:
    """Raise `ConfigurationError` if the model, or else the project's choice, cannot be had.

    Opens no connection: whether a server answers, the run itself finds out.
    """
    name = name or choose_model(os.environ).name
    if not name.startswith(LOCAL):
        resolve_model(name)
    elif not (found := _local(name)).ok:
        raise ConfigurationError(f"{found.detail}. {found.fix}")


def _local(name: str) -> Finding:
    if importlib.util.find_spec("xllamacpp") is None:
        fix = "Run `pip install 'agency-django[local]'`, or set AGENCY_MODEL=provider:model."
        return wrong("Model", f"{name} needs xllamacpp, which is not installed", fix)
    file = name.removeprefix(LOCAL)
    if file.endswith(".gguf") or "/" in file:
        return fine("Model", f"{name}, at {locate(file)}")
    weights = weights_named(file)
    if path := cached(weights):
        return fine("Model", f"{name}, {weights.title}, at {path}")
    return fine("Model", f"{name}, {weights.title}; its first use fetches {weights.size / 1e6:,.0f} MB")


def _hosted(name: str) -> Finding:
    """Package, key and address. Whether the key is right, only a request would tell."""
    client = resolve_model(name)
    base_url = getattr(getattr(client, "model", None), "base_url", None)
    if not base_url:
        return fine("Model", f"{name} is at hand")
    address = urlsplit(str(base_url))
    host, port = address.hostname or "", address.port or (80 if address.scheme == "http" else 443)
    try:
        socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        fix = "Check the network and the base URL, or set AGENCY_MODEL to another model (local:default)."
        return wrong("Model", f"{name}: {host}:{port} cannot be reached ({error})", fix)
    return fine("Model", f"{name}: package and key are there, {host}:{port} answers")

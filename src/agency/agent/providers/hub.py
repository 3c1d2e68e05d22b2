"""Fetches model weights from the model hub, if it can be reached at all within three seconds."""

import os
from pathlib import Path

from agency.agent.providers.catalogue import Weights

_CONNECT = 3.0


class HubFailed(Exception):
    """The hub was reached but did not deliver; the message is one sentence."""


def notice(weights: Weights) -> str:
    return f"Fetching {weights.title}, {weights.size / 1e6:,.0f} MB, from {endpoint()}/{weights.hub_repo}."


def endpoint() -> str:
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")


def reachable(weights: Weights) -> bool:
    """Whether the hub answers for this file; costs at most three seconds."""
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in {"1", "true", "yes", "on"}:
        return False
    import httpx

    url = f"{endpoint()}/{weights.hub_repo}/resolve/main/{weights.file}"
    try:
        return httpx.head(url, timeout=_CONNECT).status_code < 400
    except (httpx.HTTPError, OSError):
        return False


def download(weights: Weights, work: Path) -> Path:
    """Download the file into `work`; the caller checks it."""
    try:
        import httpx
        from huggingface_hub import hf_hub_download
        from huggingface_hub.utils import HfHubHTTPError, disable_progress_bars
    except ImportError as exc:
        raise HubFailed("huggingface_hub is not installed (pip install 'agency-django[local]')") from exc
    disable_progress_bars()
    try:
        return Path(hf_hub_download(weights.hub_repo, weights.file, local_dir=work))
    except (HfHubHTTPError, httpx.HTTPError, ConnectionError) as exc:
        raise HubFailed(f"the hub did not deliver the file ({type(exc).__name__})") from exc

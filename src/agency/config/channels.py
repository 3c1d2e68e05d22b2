"""The channel layer beside the broker: over it, workers tell sockets what they have written."""

from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

BACKEND = "channels_redis.pubsub.RedisPubSubChannelLayer"
_SCHEMES = {"redis": "redis", "rediss": "rediss", "redis+socket": "unix"}
CONNECT_SECONDS = 1.0


def channel_layers(broker: str | None) -> dict[str, Any]:
    """Django's `CHANNEL_LAYERS` for a broker's URL; empty if it is no Redis or Valkey.

    Databases of one server share their broadcasts, so that the names begin with the database's number.
    """
    # Celery takes several, and goes on with the next where one is away; a layer would share its groups out.
    parts = urlsplit((broker or "").split(";")[0])
    if parts.scheme not in _SCHEMES:
        return {}
    given = dict(parse_qsl(parts.query))
    number = given.pop("virtual_host", given.pop("db", ""))
    path = parts.path
    if parts.scheme != "redis+socket":
        number, path = path.strip("/") or number, ""
    number = number.strip("/") or "0"
    options = {key: _plain(value) for key, value in given.items() if key.startswith("ssl_")}
    query = urlencode({"db": number, **options}, safe="/")
    address = urlunsplit((_SCHEMES[parts.scheme], parts.netloc, path, query, ""))
    if parts.scheme == "redis+socket" and not parts.netloc:
        address = f"unix://{path}?{query}"
    host = {"address": address, "socket_connect_timeout": CONNECT_SECONDS}
    return {"default": {"BACKEND": BACKEND, "CONFIG": {"hosts": [host], "prefix": f"agency-{number}"}}}


def _plain(value: str) -> str:
    """Celery also knows the names of Python's `ssl` module: `CERT_REQUIRED` is `required` here."""
    return value.removeprefix("CERT_").lower() if value.startswith("CERT_") else value

"""Who opens a socket: the owner of a bearer token, or whoever is logged in and comes from our own pages."""

import io
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.http.request import is_same_domain

from agency.api.auth import owner_of

_SCHEMES = {"ws": "http", "wss": "https"}
BEARER = "bearer "


def request_of(scope: dict[str, Any]) -> ASGIRequest:
    """The request that opened the socket, as Django reads one."""
    scheme = _SCHEMES.get(scope.get("scheme", "ws"), "http")
    return ASGIRequest({**scope, "type": "http", "method": "GET", "scheme": scheme}, io.BytesIO())


def caller_of(request: ASGIRequest) -> Any:
    """The user who asks, or `None`. A wrong token is refused, whatever cookies say."""
    given = request.headers.get("Authorization")
    if given is not None:
        return owner_of(given[len(BEARER) :]) if given.lower().startswith(BEARER) else None
    key = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
    if not key or not is_own_page(request):
        return None
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    user = get_user(request)
    return user if user.is_authenticated and user.is_active else None


def is_own_page(request: ASGIRequest) -> bool:
    """Whether no page of another site opened the socket: browsers send cookies along with those too.

    Programs name no origin. What `CSRF_TRUSTED_ORIGINS` trusts may write, so it may listen.
    """
    origin = request.headers.get("Origin")
    if origin is None:
        return True
    host = urlsplit(origin).netloc
    try:
        own = request.get_host()
    except DisallowedHost:
        return False
    trusted = (urlsplit(one).netloc.removeprefix("*") for one in settings.CSRF_TRUSTED_ORIGINS)
    return bool(host) and (host == own or any(is_same_domain(host, one) for one in trusted))

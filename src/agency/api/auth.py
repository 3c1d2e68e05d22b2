"""Who is asking: a bearer token, or a Django session with its CSRF token. Sets `request.user`."""

from typing import Any

from django.conf import settings
from django.db.models import Q
from django.http import HttpRequest
from ninja.errors import AuthenticationError
from ninja.security import HttpBearer
from ninja.security.apikey import APIKeyCookie

from agency.models import ApiToken
from agency.models.clock import Now
from agency.models.token import digest

SEEN_EVERY = 60.0
"""Seconds between two writes of a token's `last_used_at`."""


class BearerToken(HttpBearer):
    """`Authorization: Bearer <token>`. A wrong token is refused at once, whatever cookies say."""

    def __call__(self, request: HttpRequest) -> Any:
        if "Authorization" not in request.headers:
            return None
        user = super().__call__(request)
        if user is None:
            raise AuthenticationError
        return user

    def authenticate(self, request: HttpRequest, token: str) -> Any:
        owner = owner_of(token)
        if owner is not None:
            request.user = owner
        return owner


def owner_of(token: str) -> Any:
    """The active user whose token this is, or `None`; the use is noted."""
    row = (
        ApiToken.objects.select_related("owner")
        .filter(digest=digest(token.strip()), revoked_at__isnull=True)
        .first()
    )
    if row is None or not row.owner.is_active:
        return None
    _note_use(row)
    return row.owner


def _note_use(token: ApiToken) -> None:
    long_ago = Q(last_used_at__isnull=True) | Q(last_used_at__lt=Now(-SEEN_EVERY))
    if ApiToken.objects.filter(long_ago, pk=token.pk).exists():
        ApiToken.objects.filter(long_ago, pk=token.pk).update(last_used_at=Now())


class Session(APIKeyCookie):
    """The session of a logged-in user; writing needs the CSRF token."""

    def __init__(self) -> None:
        self.param_name = settings.SESSION_COOKIE_NAME
        super().__init__(csrf=True)

    def __call__(self, request: HttpRequest) -> Any:
        user = getattr(request, "user", None)
        if user is None or not user.is_authenticated or not user.is_active:
            return None
        return super().__call__(request)

    def authenticate(self, request: HttpRequest, key: str | None) -> Any:
        return request.user

"""Who may open a socket: owners of tokens, and people on our own pages."""

from typing import Any

import pytest
from django.test import Client

from agency.models import ApiToken, Execution
from tests.integration.ws.conftest import Headers, Open, Peer

pytestmark = pytest.mark.django_db(transaction=True)
MISSIONS = "/ws/missions/"
HOST = {"Host": "testserver"}


def is_let_in(peer: Peer) -> bool:
    first = peer.next()
    assert first in ({"type": "listening"}, 4401)
    return first != 4401


@pytest.fixture
def session(user: Any) -> Headers:
    """The headers that a browser sends in which the user is logged in."""
    client = Client()
    client.force_login(user)
    return HOST | {"Cookie": "; ".join(f"{key}={one.value}" for key, one in client.cookies.items())}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer agency_wrong"},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic YTpi"},
        {"Cookie": "sessionid=wrong"} | HOST,
    ],
)
def test_who_is_not_known_is_told_to_log_in(opened: Open, headers: Headers, user: Any) -> None:
    assert not is_let_in(opened(MISSIONS, headers))


def test_a_token_opens_a_socket_from_anywhere(opened: Open, token: Headers) -> None:
    assert is_let_in(opened(MISSIONS, token))
    assert is_let_in(opened(MISSIONS, token | HOST | {"Origin": "https://elsewhere.example"}))


def test_a_wrong_token_is_refused_whatever_the_cookies_say(opened: Open, session: Headers) -> None:
    assert not is_let_in(opened(MISSIONS, session | {"Authorization": "Bearer agency_wrong"}))


def test_a_token_that_was_revoked_or_whose_owner_was_locked_opens_none(
    opened: Open, token: Headers, user: Any
) -> None:
    user.is_active = False
    user.save()
    assert not is_let_in(opened(MISSIONS, token))


def test_a_session_opens_a_socket_for_our_own_pages_alone(
    opened: Open, session: Headers, settings: Any
) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://*.example.org"]
    origins = {
        None: True,
        "http://testserver": True,
        "https://testserver": True,
        "https://ui.example.org": True,
        "https://evil.example": False,
        "https://testserver.evil.example": False,
        "https://testserver:8000": False,
        "null": False,
        "": False,
    }
    let_in = {
        origin: is_let_in(opened(MISSIONS, session | ({} if origin is None else {"Origin": origin})))
        for origin in origins
    }
    assert let_in == origins


def test_a_host_that_is_not_ours_is_nobodys_own_page(opened: Open, session: Headers) -> None:
    headers = session | {"Host": "evil.example", "Origin": "http://evil.example"}
    assert not is_let_in(opened(MISSIONS, headers))


def test_a_token_in_the_address_opens_nothing(opened: Open, token: Headers, execution: Execution) -> None:
    secret = token["Authorization"].removeprefix("Bearer ")
    assert opened(f"/ws/executions/{execution.pk}/?token={secret}").next() == 4401
    assert ApiToken.objects.get().last_used_at is None

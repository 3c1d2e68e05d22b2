"""`agency token`: made once, shown once, listed without their secrets, revoked at once."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

Agency = Callable[..., Any]


def status_with(secret: str) -> int:
    return Client().get("/api/executions", headers={"Authorization": f"Bearer {secret}"}).status_code


@pytest.mark.django_db
def test_a_token_opens_the_api_until_it_is_revoked(agency: Agency) -> None:
    made = json.loads(agency("token", "create", "laptop", "--json").out)
    assert status_with(made["token"]) == 200
    assert agency("token", "revoke", made["id"][:8]).code == 0
    assert status_with(made["token"]) == 401


@pytest.mark.django_db
def test_only_the_token_goes_to_stdout(agency: Agency) -> None:
    called = agency("token", "create", "laptop")
    assert status_with(called.out.strip()) == 200
    assert "cannot be shown again" in called.err


@pytest.mark.parametrize("name", ["", " ", "x" * 201])
@pytest.mark.django_db
def test_a_token_has_a_name_that_can_be_told_in_a_list(agency: Agency, name: str) -> None:
    called = agency("token", "create", name)
    assert called.code == 2
    assert "name" in called.err
    assert "No tokens yet" in agency("token", "list").out


@pytest.mark.django_db
def test_the_list_never_shows_a_secret(agency: Agency) -> None:
    secret = agency("token", "create", "laptop").out.strip()
    for called in (agency("token", "list"), agency("token", "list", "--json")):
        assert "laptop" in called.out
        assert secret not in called.out


@pytest.mark.django_db
def test_a_token_can_be_made_for_another_user(agency: Agency, django_user_model: Any) -> None:
    django_user_model.objects.create_user("ada")
    assert agency("token", "create", "laptop", "--user", "ada").code == 0
    assert json.loads(agency("token", "list", "--json").out)[0]["owner"] == "ada"
    assert "no user 'bob'" in agency("token", "create", "laptop", "--user", "bob").err


@pytest.mark.django_db
def test_the_local_user_cannot_log_in(agency: Agency, django_user_model: Any) -> None:
    agency("token", "create", "laptop")
    user = django_user_model.objects.get(username="agency")
    assert not user.has_usable_password()
    assert not user.is_superuser

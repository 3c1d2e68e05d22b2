"""Who may use the API: holders of a token, and logged-in users with their CSRF token."""

from typing import Any

import pytest
from django.test import Client

from agency.models import ApiToken
from tests.integration.api.conftest import ApiClient
from tests.integration.api.test_problems import problem_of


def test_without_a_token_the_answer_says_how_to_get_one(anonymous: ApiClient, db: None) -> None:
    response = anonymous.get("/executions")
    assert "agency token create" in problem_of(response, 401)["detail"]
    assert response["WWW-Authenticate"].startswith("Bearer")


def test_writing_without_a_token_is_401_and_not_a_csrf_error(anonymous: ApiClient, db: None) -> None:
    problem_of(anonymous.post("/executions", {}), 401)


@pytest.mark.parametrize("header", ["Bearer nonsense", "Bearer ", "Basic YTpi", "nonsense", "Bearer \xe9"])
def test_a_wrong_token_is_refused(anonymous: ApiClient, db: None, header: str) -> None:
    anonymous.headers = {"Authorization": header}
    problem_of(anonymous.get("/executions"), 401)


def test_a_token_is_stored_hashed(user: Any) -> None:
    token, secret = ApiToken.issue(user, "laptop")
    assert secret not in str(vars(ApiToken.objects.get(pk=token.pk)))


def test_a_revoked_token_is_refused(user: Any) -> None:
    from django.db.models.functions import Now

    token, secret = ApiToken.issue(user, "laptop")
    assert ApiClient(secret).get("/executions").status_code == 200
    ApiToken.objects.filter(pk=token.pk).update(revoked_at=Now())
    problem_of(ApiClient(secret).get("/executions"), 401)


def test_the_token_of_a_user_who_left_is_refused(user: Any, api: ApiClient) -> None:
    user.is_active = False
    user.save()
    problem_of(api.get("/executions"), 401)


def test_the_last_use_of_a_token_is_noted_at_most_once_a_minute(
    user: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, secret = ApiToken.issue(user, "laptop")

    def used() -> Any:
        assert ApiClient(secret).get("/executions").status_code == 200
        return ApiToken.objects.get(pk=token.pk).last_used_at

    first = used()
    assert first is not None
    assert used() == first
    monkeypatch.setattr("agency.models.clock.offset_seconds", 61.0)
    assert used() > first


def test_a_session_may_read(user: Any) -> None:
    client = Client()
    client.force_login(user)
    assert client.get("/api/executions").status_code == 200


def test_a_session_may_write_only_with_its_csrf_token(user: Any) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    problem_of(client.post("/api/executions", {}, content_type="application/json"), 403)
    client.cookies["csrftoken"] = "a" * 32
    with_token = client.post(
        "/api/executions", {}, content_type="application/json", headers={"X-CSRFToken": "a" * 32}
    )
    problem_of(with_token, 422)


def test_a_wrong_token_is_not_rescued_by_a_session(user: Any) -> None:
    client = Client()
    client.force_login(user)
    problem_of(client.get("/api/executions", headers={"Authorization": "Bearer nonsense"}), 401)

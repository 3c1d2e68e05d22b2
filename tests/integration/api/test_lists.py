"""Lists: filters by name, pages by cursor, and nothing that belongs to somebody else."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from agency.models import Execution
from tests.integration.api.conftest import ApiClient
from tests.integration.api.test_problems import paths, problem_of


def ids(response: Any) -> list[str]:
    assert response.status_code == 200, response.content
    return [item["id"] for item in response.json()["items"]]


def every_page(api: ApiClient, limit: int) -> list[str]:
    found, query = [], {"limit": limit}
    while True:
        page = api.get("/executions", **query).json()
        found += [item["id"] for item in page["items"]]
        if page["next"] is None:
            return found
        query["cursor"] = page["next"]


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_pages_show_every_row_once_newest_first(
    api: ApiClient, execution: Callable[..., Any], limit: int
) -> None:
    rows = [execution() for _ in range(7)]
    same = rows[2].created_at  # rows of one moment are told apart by id
    Execution.objects.filter(pk__in=[row.pk for row in rows[2:5]]).update(created_at=same)
    stored = Execution.objects.order_by("-created_at", "-id").values_list("id", flat=True)
    assert every_page(api, limit) == [str(row) for row in stored]


def test_a_new_row_does_not_shift_the_pages(api: ApiClient, execution: Callable[..., Any]) -> None:
    rows = [execution() for _ in range(4)]
    for age, row in enumerate(reversed(rows)):
        Execution.objects.filter(pk=row.pk).update(created_at=row.created_at - timedelta(seconds=age))
    first = api.get("/executions", limit=2).json()
    execution()
    second = api.get("/executions", limit=2, cursor=first["next"]).json()
    seen = [item["id"] for item in first["items"] + second["items"]]
    assert seen == [str(row.pk) for row in reversed(rows)]


@pytest.mark.parametrize("cursor", ["nonsense", "", "a:b:c", "\x00"])
def test_a_bad_cursor_is_refused(api: ApiClient, cursor: str) -> None:
    assert paths(problem_of(api.get("/executions", cursor=cursor), 422)) == ["cursor"]


def test_an_unknown_filter_is_refused_and_the_known_are_listed(api: ApiClient) -> None:
    body = problem_of(api.get("/executions", stauts="failed", limit=1), 422)
    assert paths(body) == ["stauts"]
    assert "created_after" in body["detail"]


@pytest.mark.parametrize("path", ["/agents", "/definitions", "/executions/{id}", "/executions/{id}/events"])
def test_a_parameter_that_a_page_does_not_know_is_refused_everywhere(
    api: ApiClient, execution: Callable[..., Any], path: str
) -> None:
    body = problem_of(api.get(path.format(id=execution().pk), stauts="failed"), 422)
    assert paths(body) == ["stauts"]


def test_a_filter_given_twice_is_refused_rather_than_half_used(api: ApiClient) -> None:
    body = problem_of(api.get("/executions", status=["failed", "finished"]), 422)
    assert paths(body) == ["status"]
    assert "once" in body["detail"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("status", "done"),
        ("agent", "seven"),
        ("batch", "seven"),
        ("created_after", "yesterday"),
        ("created_after", "1.5"),
        ("created_before", "2026-01-01T00:00:00"),
        ("limit", "0"),
        ("limit", "201"),
        ("limit", "ten"),
        ("execution_key", "a\x00b"),
    ],
)
def test_a_filter_value_that_does_not_fit_is_named(api: ApiClient, name: str, value: str) -> None:
    assert paths(problem_of(api.get("/executions", **{name: value}), 422)) == [name]


def test_filters_narrow_the_list(api: ApiClient, execution: Callable[..., Any]) -> None:
    batch = uuid4()
    plain = execution()
    failed = execution(status="failed")
    other = execution(execution_key="other", batch_id=batch)
    assert ids(api.get("/executions", status="failed")) == [str(failed.pk)]
    assert ids(api.get("/executions", execution_key="other")) == [str(other.pk)]
    assert ids(api.get("/executions", batch=str(batch))) == [str(other.pk)]
    assert ids(
        api.get("/executions", agent=str(plain.agent_id), status="pending", execution_key="count-words")
    ) == [str(plain.pk)]
    assert ids(api.get("/executions", agent=str(uuid4()))) == []


def test_moments_narrow_the_list(api: ApiClient, execution: Callable[..., Any]) -> None:
    old, new = execution(), execution()
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    Execution.objects.filter(pk=old.pk).update(created_at=moment)
    assert ids(api.get("/executions", created_after="2026-01-02T00:00:00Z")) == [str(new.pk)]
    assert ids(api.get("/executions", created_before="2026-01-02T00:00:00Z")) == [str(old.pk)]


def test_a_user_sees_only_their_own(
    api: ApiClient, other_api: ApiClient, execution: Callable[..., Any]
) -> None:
    row = execution()
    assert ids(api.get("/executions")) == [str(row.pk)]
    assert ids(other_api.get("/executions")) == []
    for path in ("", "/events", "/trace"):
        problem_of(other_api.get(f"/executions/{row.pk}{path}"), 404)
    problem_of(other_api.post(f"/executions/{row.pk}/cancel"), 404)


def test_a_superuser_sees_all(
    user: Any, other_api: ApiClient, other_user: Any, execution: Callable[..., Any]
) -> None:
    row = execution()
    other_user.is_superuser = True
    other_user.save()
    assert ids(other_api.get("/executions")) == [str(row.pk)]

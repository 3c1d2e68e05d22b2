"""Every error of the API is a problem document, whatever went wrong."""

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from asgiref.testing import ApplicationCommunicator
from django.core.asgi import get_asgi_application
from django.db import connection

from agency.models import ApiToken, Execution
from tests.integration.api.conftest import ApiClient

UNKNOWN = "00000000-0000-4000-8000-000000000000"


def problem_of(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.content
    assert response["Content-Type"] == "application/problem+json"
    body = response.json()
    assert body["status"] == status
    assert body["type"].startswith("urn:agency:problem:")
    assert body["title"]
    assert body["detail"]
    return body


def paths(body: dict[str, Any]) -> list[str]:
    return [error["path"] for error in body["errors"]]


@pytest.mark.parametrize("path", ["/nonsense", "/"])
def test_a_page_that_is_not_there_is_a_problem(api: ApiClient, path: str) -> None:
    problem_of(api.get(path), 404)


def test_a_method_that_is_not_possible_names_those_that_are(api: ApiClient) -> None:
    response = api.client.put("/api/executions", headers=api.headers)
    problem_of(response, 405)
    assert set(response["Allow"].split(", ")) == {"GET", "POST"}


def test_an_execution_that_does_not_exist_is_404(api: ApiClient) -> None:
    assert UNKNOWN in problem_of(api.get(f"/executions/{UNKNOWN}"), 404)["detail"]


def test_an_id_that_is_no_uuid_is_refused_by_name(api: ApiClient) -> None:
    assert paths(problem_of(api.get("/executions/seven"), 422)) == ["execution_id"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b'{"agent": NaN}', 400),
        (b'{"agent": 1e999}', 400),
        (b"[" * 100_000, 400),
        (b"", 422),
        (b"[]", 422),
        (b'"text"', 422),
        (b"{}", 422),
    ],
)
def test_a_body_that_is_no_object_is_refused(api: ApiClient, body: bytes, status: int) -> None:
    problem_of(api.post("/executions", body), status)
    assert not Execution.objects.exists()


@pytest.mark.parametrize("body", [b"", b"[]", b'"text"', b"null"])
def test_a_body_that_is_no_object_is_told_so_in_the_words_of_json(api: ApiClient, body: bytes) -> None:
    assert problem_of(api.post("/executions", body), 422)["detail"] == "The body must be a JSON object"


@pytest.mark.parametrize("text", ["a\x00b", "half \ud800 pair"])
def test_text_that_no_database_can_hold_is_refused_with_its_path(api: ApiClient, text: str) -> None:
    order = {"agent": UNKNOWN, "execution_key": "k", "input": {"rows": [{"text": text}]}}
    assert paths(problem_of(api.post("/executions", order), 422)) == ["input.rows[0].text"]


def test_a_key_that_no_database_can_hold_is_refused(api: ApiClient) -> None:
    order = {"agent": UNKNOWN, "execution_key": "k", "input": {"a\x00": 1}}
    assert paths(problem_of(api.post("/executions", order), 422)) == ["input (a key)"]


def test_each_faulty_field_is_named(api: ApiClient) -> None:
    order = {"agent": "seven", "execution_key": "k", "input": [], "inptu": {}}
    assert sorted(paths(problem_of(api.post("/executions", order), 422))) == ["agent", "inptu", "input"]


def test_a_body_over_the_limit_is_413(api: ApiClient, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    assert "1000 bytes" in problem_of(api.post("/executions", b" " * 1001), 413)["detail"]


async def _post_in_chunks(path: str, chunks: list[bytes]) -> tuple[int, bytes]:
    """Status and body of a request that does not say beforehand how long it is."""
    headers = [(b"host", b"testserver")]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b""}
    service = ApplicationCommunicator(get_asgi_application(), scope)
    for chunk in chunks:
        await service.send_input({"type": "http.request", "body": chunk, "more_body": True})
    await service.send_input({"type": "http.request", "body": b"", "more_body": False})
    start, body = await service.receive_output(10), await service.receive_output(10)
    return start["status"], body["body"]


def test_a_chunked_body_over_the_limit_is_413(settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    status, body = async_to_sync(_post_in_chunks)("/api/executions", [b" " * 600, b" " * 600])
    assert status == 413
    assert b"1000 bytes" in body


@pytest.mark.django_db(transaction=True)
def test_a_fault_of_ours_says_nothing_of_the_inside_but_a_reference(
    api: ApiClient, execution: Any, caplog: pytest.LogCaptureFixture
) -> None:
    row = execution()
    Execution.objects.filter(pk=row.pk).update(usage=["not an object"])
    body = problem_of(api.get(f"/executions/{row.pk}"), 500)
    assert "usage" not in body["detail"]
    assert body["reference"] in caplog.text
    assert "ValidationError" in caplog.text


def test_an_error_takes_back_what_the_request_wrote(api: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", True)
    problem_of(api.post("/executions", {}), 422)
    assert not ApiToken.objects.filter(last_used_at__isnull=False).exists()
    assert api.get("/executions").status_code == 200
    assert ApiToken.objects.filter(last_used_at__isnull=False).exists()

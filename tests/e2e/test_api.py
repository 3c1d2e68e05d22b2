"""The API as a real web server serves it."""

import re
from collections.abc import Iterator

import pytest

from tests.e2e.service import Service

pytestmark = pytest.mark.e2e


def test_the_docs_page_and_all_its_files_come_from_this_server(shared: Service) -> None:
    http = shared.client().http
    page = http.get("/api/docs")
    assert page.status_code == 200
    for source in re.findall(r'(?:src|href)="([^"]+)"', page.text):
        assert source.startswith("/static/")
        assert http.get(source).status_code == 200, source


def test_the_address_that_the_service_prints_leads_to_the_docs(shared: Service) -> None:
    answer = shared.client().http.get("/", follow_redirects=True)
    assert answer.status_code == 200
    assert answer.url.path == "/api/docs"


def test_a_body_without_a_length_is_still_limited(shared: Service) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(64):
            yield b" " * 65536

    answer = shared.client().http.post("/api/executions", content=endless())
    assert answer.status_code == 413
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_an_error_is_a_problem_whatever_the_path(shared: Service) -> None:
    answer = shared.client().http.get("/api/no/such/place")
    assert (answer.status_code, answer.json()["status"]) == (404, 404)

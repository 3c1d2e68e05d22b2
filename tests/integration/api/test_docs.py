"""The API describes itself: an OpenAPI document and a page that shows it without the network."""

import re
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.test import Client


@pytest.fixture
def document() -> dict:
    return Client().get("/api/openapi.json").json()


def test_the_document_is_openapi_3_1(document: dict) -> None:
    assert document["openapi"].startswith("3.1")


def test_every_operation_says_which_problems_it_may_answer(document: dict) -> None:
    operations = [op for methods in document["paths"].values() for op in methods.values()]
    assert len(operations) >= 11
    for operation in operations:
        content = operation["responses"]["401"]["content"]
        assert content["application/problem+json"]["schema"] == {"$ref": "#/components/schemas/Problem"}
    assert document["components"]["schemas"]["Problem"]["required"] == ["type", "title", "status", "detail"]


def test_every_operation_needs_a_token_or_a_session(document: dict) -> None:
    for methods in document["paths"].values():
        for operation in methods.values():
            assert operation["security"] == [{"BearerToken": []}, {"Session": []}]


def test_the_docs_page_loads_its_files_from_this_server() -> None:
    page = Client().get("/api/docs").content.decode()
    sources = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert sources
    for source in sources:
        assert source.startswith("/static/")
        assert Path(finders.find(source.removeprefix("/static/"))).is_file()

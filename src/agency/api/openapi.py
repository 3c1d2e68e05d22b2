"""Completes the OpenAPI document with what is true of every operation: its problem details."""

from typing import Any

from ninja.openapi.schema import OpenAPISchema
from pydantic.json_schema import models_json_schema

from agency.api.problems import MEDIA_TYPE, FieldError, Problem

REF = "#/components/schemas/{model}"
ALWAYS = {
    "401": "No valid token or session",
    "413": "The body is too large",
    "422": "Something sent does not fit; `errors` says where",
}
WITH_PATH = {"404": "There is no such thing, or you may not see it"}
WITH_BODY = {
    "400": "The body is not JSON",
    "403": "The CSRF token is missing (sessions only)",
    "409": "It collides with what is there",
}


def completed(document: OpenAPISchema) -> OpenAPISchema:
    """`document` with the schema of a problem and, per operation, the answers that can be one."""
    _, definitions = models_json_schema(
        [(Problem, "serialization"), (FieldError, "serialization")], ref_template=REF
    )
    document["components"]["schemas"].update(definitions["$defs"])
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            for status, description in _failures(path, method).items():
                operation["responses"].setdefault(status, _answer(description))
    return document


def _failures(path: str, method: str) -> dict[str, str]:
    failures = dict(ALWAYS)
    if "{" in path:
        failures |= WITH_PATH
    if method in {"post", "patch"}:
        failures |= WITH_BODY
    if method == "delete":
        failures |= {status: WITH_BODY[status] for status in ("403", "409")}
    return failures


def _answer(description: str) -> dict[str, Any]:
    schema = {"$ref": REF.format(model="Problem")}
    return {"description": description, "content": {MEDIA_TYPE: {"schema": schema}}}

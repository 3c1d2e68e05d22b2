"""Every error as problem details (RFC 9457): the one place that turns exceptions into answers."""

import json
import secrets
from http import HTTPStatus
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.core.signals import got_request_exception
from django.db import connections
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError
from pydantic import BaseModel, Field

from agency.errors import IdempotencyConflict, InvalidInput, StaleExecution
from agency.redaction import safe_logger

logger = safe_logger("agency.api")
MEDIA_TYPE = "application/problem+json"


class FieldError(BaseModel):
    """What is wrong with one value. `path` is dotted, with list positions in brackets."""

    path: str
    message: str


class Problem(BaseModel):
    """An error, as RFC 9457 has it. `reference` is in the server's log where the fault is ours."""

    type: str = Field(examples=["urn:agency:problem:invalid-input"])
    title: str
    status: int
    detail: str
    errors: list[FieldError] = []
    reference: str | None = None
    request: dict[str, Any] | None = Field(
        None, description="The human request as it stands, where an answer to it came too late."
    )


class BadRequest(Exception):
    """A request refused before or beside its validation: the status to answer with and the reason."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        errors: list[dict[str, str]] | None = None,
        more: dict[str, BaseModel] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.kind, self.detail, self.errors = status, kind, detail, errors
        self.more = more


def problem(
    status: int,
    kind: str,
    detail: str,
    *,
    errors: list[dict[str, str]] | None = None,
    reference: str | None = None,
    headers: dict[str, str] | None = None,
    more: dict[str, BaseModel] | None = None,
) -> HttpResponse:
    """The answer for an error; what the request wrote so far is taken back under `ATOMIC_REQUESTS`."""
    body: dict[str, Any] = {
        "type": f"urn:agency:problem:{kind}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
    }
    if errors:
        body["errors"] = errors
    if reference:
        body["reference"] = reference
    for name, value in (more or {}).items():
        body[name] = value.model_dump(mode="json")
    _roll_back()
    content = json.dumps(body, ensure_ascii=True)
    return HttpResponse(content, status=status, content_type=MEDIA_TYPE, headers=headers)


def _roll_back() -> None:
    """Django commits a request's transaction when a response is returned, and an error is one here."""
    for connection in connections.all(initialized_only=True):
        if connection.settings_dict["ATOMIC_REQUESTS"] and connection.in_atomic_block:
            connection.set_rollback(True)


def invalid(detail: str, path: str, message: str | None = None) -> BadRequest:
    """A 422 about one value."""
    return BadRequest(422, "invalid-input", detail, [{"path": path, "message": message or detail}])


def install(api: NinjaAPI) -> None:
    """Make `api` answer every exception through this module."""
    api.add_exception_handler(ValidationError, _on_validation_error)
    api.add_exception_handler(InvalidInput, _on_invalid_input)
    api.add_exception_handler(IdempotencyConflict, _on_idempotency_conflict)
    api.add_exception_handler(StaleExecution, _on_stale)
    api.add_exception_handler(BadRequest, _on_bad_request)
    api.add_exception_handler(RequestDataTooBig, _on_too_big)
    api.add_exception_handler(AuthenticationError, _on_unauthenticated)
    api.add_exception_handler(HttpError, _on_http_error)
    api.add_exception_handler(Http404, _on_missing)
    api.add_exception_handler(Exception, on_our_fault)


@csrf_exempt
def no_such_page(request: HttpRequest) -> HttpResponse:
    return problem(404, "not-found", f"There is nothing at {request.path}.")


def not_allowed(request: HttpRequest, allow: str) -> HttpResponse:
    detail = f"{request.method} is not possible here; possible: {allow}."
    return problem(405, "method-not-allowed", detail, headers={"Allow": allow})


def _on_validation_error(request: HttpRequest, exc: Any) -> HttpResponse:
    errors = [{"path": _path(error["loc"]), "message": _message(error)} for error in exc.errors]
    first = errors[0]
    where = f"{first['path']}: " if first["path"] else ""
    return problem(422, "invalid-input", f"{where}{first['message']}", errors=errors)


def _message(error: dict[str, Any]) -> str:
    is_whole_body = error["loc"][0] == "body" and len(error["loc"]) == 2
    if is_whole_body and error["type"] in {"missing", "model_type", "model_attributes_type"}:
        return "The body must be a JSON object"
    return str(error["msg"]).removeprefix("Value error, ")


def _path(loc: tuple[str | int, ...]) -> str:
    """`("body", "order", "inputs", 3, "text")` as `inputs[3].text`: source and parameter name say nothing."""
    parts = loc[2:] if loc[0] == "body" else loc[1:]
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return text.removeprefix(".")


def _on_invalid_input(request: HttpRequest, exc: Any) -> HttpResponse:
    return problem(422, "invalid-input", str(exc), errors=exc.errors)


def _on_idempotency_conflict(request: HttpRequest, exc: Any) -> HttpResponse:
    return problem(409, "idempotency-conflict", str(exc))


def _on_stale(request: HttpRequest, exc: Any) -> HttpResponse:
    return problem(409, "conflict", "The execution changed in the meantime. Read it again, then decide.")


def _on_bad_request(request: HttpRequest, exc: Any) -> HttpResponse:
    return problem(exc.status, exc.kind, exc.detail, errors=exc.errors, more=exc.more)


def _on_too_big(request: HttpRequest, exc: Any) -> HttpResponse:
    return problem(413, "too-large", "The body is too large; send less, or in several requests.")


def _on_unauthenticated(request: HttpRequest, exc: Any) -> HttpResponse:
    detail = "Send a valid token: `Authorization: Bearer ...`. `agency token create NAME` makes one."
    return problem(401, "unauthenticated", detail, headers={"WWW-Authenticate": 'Bearer realm="agency"'})


def _on_http_error(request: HttpRequest, exc: Any) -> HttpResponse:
    if isinstance(exc.__cause__, BadRequest):  # raised by our parser, wrapped by ninja
        return _on_bad_request(request, exc.__cause__)
    kind = "forbidden" if exc.status_code == 403 else "bad-request"
    return problem(exc.status_code, kind, str(exc))


def _on_missing(request: HttpRequest, exc: Any) -> HttpResponse:
    return problem(404, "not-found", str(exc) or "There is no such thing, or you may not see it.")


def on_our_fault(request: HttpRequest, exc: Any) -> HttpResponse:
    """A 500 that says nothing of the inside; the reference leads to the traceback in the log."""
    reference = secrets.token_hex(6)
    logger.error("API fault %s at %s %s", reference, request.method, request.path, exc_info=exc)
    got_request_exception.send(sender=None, request=request)
    detail = f"Something went wrong on our side. The server's log has it under {reference}."
    return problem(500, "internal", detail, reference=reference)

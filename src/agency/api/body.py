"""What a request may carry: known parameters, a bounded and strict JSON body, text that can be stored."""

import json
import math
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, NoReturn

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from ninja.parser import Parser

from agency.api import problems
from agency.api.problems import BadRequest

View = Callable[..., HttpResponse]


class StrictParser(Parser):
    """JSON without `NaN`, endless numbers, NUL characters and lone surrogates."""

    def parse_body(self, request: HttpRequest) -> Any:
        try:
            data = json.loads(request.body, parse_constant=_no_constant, parse_float=_finite)
        except (ValueError, RecursionError) as exc:
            raise BadRequest(400, "broken-json", f"The body is not JSON: {exc}") from exc
        for path, text in _texts(data, ""):
            if not storable(text):
                message = "contains a NUL character or half of a surrogate pair"
                raise problems.invalid(f"{path or 'the body'} {message}", path, message)
        return data


def storable(text: str) -> bool:
    """Whether a database can hold `text`: no NUL, no lone surrogate."""
    return "\x00" not in text and (text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text))


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is too large for a number")
    return number


def _texts(data: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(data, str):
        yield path, data
    elif isinstance(data, list):
        for index, item in enumerate(data):
            yield from _texts(item, f"{path}[{index}]")
    elif isinstance(data, dict):
        for key, item in data.items():
            inner = f"{path}.{key}" if path else key
            yield (inner if storable(key) else f"{path} (a key)".strip()), key
            yield from _texts(item, inner)


def only_known(request: HttpRequest, *names: str) -> None:
    """Refuse a query parameter that is not among `names`, or given twice: it would be silently ignored."""
    known = f"known: {', '.join(sorted(names))}" if names else "there is none here"
    errors = [
        {"path": name, "message": "give it once" if name in names else f"unknown filter; {known}"}
        for name, values in request.GET.lists()
        if name not in names or len(values) > 1
    ]
    if errors:
        raise BadRequest(422, "unknown-filter", f"{errors[0]['path']}: {errors[0]['message']}", errors)


def guarded(view: View) -> View:
    """`view` with a size limit that holds for chunked bodies too, and problem details for 405."""

    @wraps(view)
    def inner(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        try:
            too_big = limit is not None and len(request.body) > limit
        except RequestDataTooBig:
            too_big = True
        if too_big:
            detail = f"The body is larger than {limit} bytes; send less, or in several requests."
            return problems.problem(413, "too-large", detail)
        try:
            response = view(request, *args, **kwargs)
        except Http404:
            return problems.no_such_page(request)
        if isinstance(response, HttpResponseNotAllowed):
            return problems.not_allowed(request, response["Allow"])
        return response

    return inner

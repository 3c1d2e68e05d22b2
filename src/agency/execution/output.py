"""From the text of an answer to the JSON object that an execution stores."""

import json
import math
from typing import Any, NoReturn, cast

from agency.agent.text import clean, clean_json, is_deep


class NotJson(ValueError):
    """The text is no strict JSON; the message says where and why."""


def parse_json(text: str) -> Any:
    """Parse strict JSON (RFC 8259): no NaN, no infinity, no number beyond a float's range, nothing around it.

    Texts inside come out clean of what a database cannot store.
    """
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
        if is_deep(value):
            raise NotJson("it is nested too deeply")
        return clean_json(value)
    except json.JSONDecodeError as exc:
        raise NotJson(f"{exc.msg} at line {exc.lineno}, column {exc.colno}") from exc
    except RecursionError as exc:
        raise NotJson("it is nested too deeply") from exc
    except NotJson:
        raise
    except ValueError as exc:
        raise NotJson(str(exc).split(":")[0]) from exc


def to_output(response: str) -> dict[str, Any]:
    """A JSON object as it is; other JSON as `{"value": …}`; text as `{"response": …}`."""
    try:
        return as_object(parse_json(response))
    except NotJson:
        return {"response": clean(response)}


def as_object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {"value": value}


def is_fenced(text: str) -> bool:
    """Whether the answer sits in (or starts with) a Markdown code fence."""
    return text.lstrip().startswith("```")


def _refuse(constant: str) -> NoReturn:
    raise NotJson(f"{constant} is not a JSON value")


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise NotJson(f"the number {number[:40]} is too large")
    return value

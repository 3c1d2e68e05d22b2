"""How much of a tool's result a run takes in, and what becomes of the rest."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agency.agent.text import RESULT_LIMIT, as_payload, canonical, cut
from agency.redaction import redact


@dataclass(slots=True)
class Body:
    """A whole text that was too long to be taken in, under the SHA-256 that the cut text names."""

    sha256: str
    text: str


def _drop(body: Body) -> None:
    return None


@dataclass(slots=True)
class Payloads:
    """`limit` is in characters for each result. A body of up to `room` characters may be given to `keep`,
    which is used on the run's own thread only.
    """

    limit: int = RESULT_LIMIT
    room: int = 0
    keep: Callable[[Body], None] = _drop


def taken_in(value: Any, payloads: Payloads) -> tuple[Any, Body | None]:
    """What a run and its model see of a tool's return value, and the whole of it where that is to be kept.

    Secrets are masked in what is cut, so that the part that is seen and the whole agree.
    """
    if value is None or isinstance(value, int):
        return value, None
    payload = as_payload(value)
    text = payload if isinstance(payload, str) else canonical(payload)
    if len(text) <= payloads.limit:
        return payload, None
    masked = redact(payload)
    text = masked if isinstance(masked, str) else canonical(masked)
    if len(text) > payloads.room:
        return cut(text, payloads.limit), None
    body = Body(hashlib.sha256(text.encode()).hexdigest(), text)
    return cut(text, payloads.limit, f"the whole is kept as {body.sha256}"), body

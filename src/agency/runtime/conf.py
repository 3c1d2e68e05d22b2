"""The `AGENCY` setting of a Django project: every key with its default and what it may be.

An unknown key or a value that cannot be is an error that names the key and what to set it to.
"""

import time
from dataclasses import dataclass, fields
from typing import Annotated, Any, get_type_hints

from django.conf import settings
from django.core import checks
from pydantic import Field, TypeAdapter, ValidationError

from agency.errors import ConfigurationError

Seconds = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Pause = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(strict=True, ge=1)]
Several = Annotated[int, Field(strict=True, ge=2)]
Times = Annotated[int, Field(strict=True, ge=0)]
Switch = Annotated[bool, Field(strict=True)]
Path = Annotated[str, Field(strict=True, pattern=r"^[A-Za-z_][\w.]*\.[A-Za-z_]\w*$")]
_MEANT = {
    Seconds: "a number of seconds above 0",
    Pause: "a number of seconds, 0 or more",
    Count: "a whole number from 1",
    Several: "a whole number from 2",
    Times: "a whole number, 0 or more",
    Switch: "True or False",
    Path: "the dotted path of something that can be imported",
}


@dataclass(frozen=True, slots=True)
class RuntimeSettings:
    """Times are in seconds.

    `LEASE_SECONDS`: how long a claim lives without a beat. `BEAT_SECONDS`: between beats.
    `CLAIM_CAP`: claims of one attempt that may be lost before it counts as a crash loop.
    `MODEL_RETRIES`: how often in a row an execution is put back because its model cannot be reached.
    `DEADLINE_SECONDS`: from the first claim to the end of an execution; `None` for no limit.
    `ATTEMPT_SECONDS`: for which one attempt may hold a worker; then the execution ends as
    `deadline_exceeded`. `None` for no limit but the execution's.
    `DRAIN_SECONDS`: what a stopping worker grants to calls in flight before it gives its claims back.
    `POLL_SECONDS`: between looks of an idle worker at the database. `WORKER_SLOTS`: executions that a
    polling worker runs at once. `DISPATCH_SECONDS`, `DISPATCH_BATCH`: pause and size of a dispatcher's
    round. `WAKE_BACKOFF_SECONDS`, `WAKE_BACKOFF_MAX_SECONDS`: between repeated wake-ups of one row.
    `CONCURRENCY_PER_OWNER`, `CONCURRENCY_PER_AGENT`, `CONCURRENCY_PER_PROVIDER`: executions that run at
    once for one owner, one configured agent (which its own `limits["concurrency"]` overrules) and one
    provider; the last also as `{"openai": 20}`. `None`, as by default, or a provider that is not named:
    no limit.
    `MODEL_SECONDS`, `MODEL_FIRST_SECONDS`, `MODEL_CHUNK_SECONDS`: how long a model may take for a whole
    answer, for the first piece of a stream and for each other piece, where a request says nothing else;
    `None` leaves it to the provider's client (hosted models: 300, 60 and 90).
    `REQUEST_EXPIRY_SECONDS`: how long a person may take to answer; `REQUEST_WARNING_SECONDS`: how long
    before that the coming expiry is told.
    `SLOT_RETENTION_SECONDS`: how long what became of a schedule's slots is kept (90 days), beside the last
    hundred of each schedule; `None` for ever. Executions stay.
    `RESULT_LIMIT`: characters of a tool's result that a run takes in; the whole is kept beside it, as is that
    of an event of more than `EVENT_LIMIT` characters, while an execution's events and bodies hold less than
    `RUN_LIMIT` bytes.
    `LLM_CLIENT_FACTORY`: dotted path of a callable `(model) -> LlmClient` that replaces the providers.
    `CELERY_APP`: dotted path of the project's Celery app; by default the one loaded with the project.
    `DEATH_HINT`: on PostgreSQL, hold a session lock by which others see at once that a process is gone.
    `STUCK_SECONDS`: after which a run that was told to stop, and does not, is fenced off. `ALONE_AFTER`:
    lost claims after which an execution runs in a process of its own, where it can harm no neighbour.
    """

    LEASE_SECONDS: Seconds = 60.0
    BEAT_SECONDS: Seconds = 1.0
    CLAIM_CAP: Count = 5
    MODEL_RETRIES: Times = 10
    DEADLINE_SECONDS: Seconds | None = 3600.0
    ATTEMPT_SECONDS: Seconds | None = None
    DRAIN_SECONDS: Pause = 3.0
    POLL_SECONDS: Seconds = 1.0
    WORKER_SLOTS: Count = 4
    DISPATCH_SECONDS: Seconds = 1.0
    DISPATCH_BATCH: Count = 200
    WAKE_BACKOFF_SECONDS: Seconds = 15.0
    WAKE_BACKOFF_MAX_SECONDS: Seconds = 300.0
    CONCURRENCY_PER_OWNER: Count | None = None
    CONCURRENCY_PER_AGENT: Count | None = None
    CONCURRENCY_PER_PROVIDER: Count | dict[str, Count] | None = None
    MODEL_SECONDS: Seconds | None = None
    MODEL_FIRST_SECONDS: Seconds | None = None
    MODEL_CHUNK_SECONDS: Seconds | None = None
    REQUEST_EXPIRY_SECONDS: Seconds = 7 * 86_400.0
    REQUEST_WARNING_SECONDS: Seconds = 86_400.0
    SLOT_RETENTION_SECONDS: Seconds | None = 90 * 86_400.0
    RESULT_LIMIT: Count = 100_000
    EVENT_LIMIT: Count = 1_000_000
    RUN_LIMIT: Count = 200_000_000
    LLM_CLIENT_FACTORY: Path | None = None
    CELERY_APP: Path | None = None
    DEATH_HINT: Switch = True
    STUCK_SECONDS: Seconds = 10.0
    ALONE_AFTER: Several = 3


_KNOWN = tuple(field.name for field in fields(RuntimeSettings))
_READER = TypeAdapter(RuntimeSettings)
_last: list[tuple[dict[str, Any], RuntimeSettings]] = []


def current() -> RuntimeSettings:
    """The settings as they are now; `ConfigurationError` names the key that is wrong and the fix."""
    given: dict[str, Any] = getattr(settings, "AGENCY", {})
    if _last and _last[0][0] == given:
        return _last[0][1]
    read = _read(given)
    _last[:] = [(dict(given), read)]
    return read


def _read(given: Any) -> RuntimeSettings:
    if not isinstance(given, dict):
        raise ConfigurationError(f"settings.AGENCY is {given!r}. Set it to a dict, empty for all defaults.")
    unknown = sorted(set(given) - set(_KNOWN), key=str)
    if unknown:
        raise ConfigurationError(
            f"settings.AGENCY has no key {unknown[0]!r}. Known keys: {', '.join(_KNOWN)}."
        )
    try:
        read = _READER.validate_python(given)
    except ValidationError as error:
        key = str(error.errors()[0]["loc"][0])
        raise _wrong(key, given[key], f"Set it to {_meant(key)}") from error
    if read.LEASE_SECONDS < 3 * read.BEAT_SECONDS:
        least = f"Set it to at least three times BEAT_SECONDS ({read.BEAT_SECONDS:g})"
        value = given.get("LEASE_SECONDS", read.LEASE_SECONDS)
        raise _wrong("LEASE_SECONDS", value, f"{least}: a late beat must lose no claim")
    return read


def _wrong(key: str, value: Any, fix: str) -> ConfigurationError:
    return ConfigurationError(f"settings.AGENCY[{key!r}] is {value!r}. {fix}.")


def _meant(key: str) -> str:
    """In words what a key may be; `None` is named where it is allowed."""
    hint = get_type_hints(RuntimeSettings, include_extras=True)[key]
    if hint in _MEANT:
        return _MEANT[hint]
    kinds = getattr(hint, "__args__", ())
    said = [_MEANT[kind] for kind in kinds if kind in _MEANT]
    if dict[str, Count] in kinds:
        said.append('a dict as {"openai": 20}')
    return ", ".join([*said, "or None"])


def attempt_deadline(own: float | None = None) -> float | None:
    """When an attempt that goes on now must be over, by `time.monotonic()`; `own` seconds are its order's."""
    limits = [seconds for seconds in (current().ATTEMPT_SECONDS, own) if seconds is not None]
    return time.monotonic() + min(limits) if limits else None


def check(**_: Any) -> list[checks.CheckMessage]:
    """Django's system check of `settings.AGENCY`."""
    try:
        current()
    except ConfigurationError as error:
        return [checks.Error(str(error), hint="Correct the AGENCY setting.", id="agency.E010")]
    return []

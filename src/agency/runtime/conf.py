"""The `AGENCY` setting of a Django project: every key with its default. An unknown key is an error."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from django.conf import settings
from django.core import checks

from agency.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class RuntimeSettings:
    """Times are in seconds.

    `LEASE_SECONDS`: how long a claim lives without a beat. `BEAT_SECONDS`: between beats.
    `CLAIM_CAP`: claims of one attempt that may be lost before it counts as a crash loop.
    `MODEL_RETRIES`: how often in a row an execution is put back because its model cannot be reached.
    `DEADLINE_SECONDS`: from the first claim to the end of an execution; `None` for no limit.
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
    `LLM_CLIENT_FACTORY`: dotted path of a callable `(model) -> LlmClient` that replaces the providers.
    `CELERY_APP`: dotted path of the project's Celery app; by default the one loaded with the project.
    `DEATH_HINT`: on PostgreSQL, hold a session lock by which others see at once that a process is gone.
    `STUCK_SECONDS`: after which a run that was told to stop, and does not, is fenced off. `ALONE_AFTER`:
    lost claims after which an execution runs in a process of its own, where it can harm no neighbour.
    """

    LEASE_SECONDS: float = 60.0
    BEAT_SECONDS: float = 1.0
    CLAIM_CAP: int = 5
    MODEL_RETRIES: int = 10
    DEADLINE_SECONDS: float | None = 3600.0
    DRAIN_SECONDS: float = 3.0
    POLL_SECONDS: float = 1.0
    WORKER_SLOTS: int = 4
    DISPATCH_SECONDS: float = 1.0
    DISPATCH_BATCH: int = 200
    WAKE_BACKOFF_SECONDS: float = 15.0
    WAKE_BACKOFF_MAX_SECONDS: float = 300.0
    CONCURRENCY_PER_OWNER: int | None = None
    CONCURRENCY_PER_AGENT: int | None = None
    CONCURRENCY_PER_PROVIDER: int | Mapping[str, int] | None = None
    MODEL_SECONDS: float | None = None
    MODEL_FIRST_SECONDS: float | None = None
    MODEL_CHUNK_SECONDS: float | None = None
    REQUEST_EXPIRY_SECONDS: float = 7 * 86_400.0
    REQUEST_WARNING_SECONDS: float = 86_400.0
    LLM_CLIENT_FACTORY: str | None = None
    CELERY_APP: str | None = None
    DEATH_HINT: bool = True
    STUCK_SECONDS: float = 10.0
    ALONE_AFTER: int = 2


_KNOWN = tuple(field.name for field in fields(RuntimeSettings))


def current() -> RuntimeSettings:
    """The settings as they are now; `ConfigurationError` names an unknown key and lists the known ones."""
    given: dict[str, Any] = getattr(settings, "AGENCY", {})
    unknown = sorted(set(given) - set(_KNOWN))
    if unknown:
        raise ConfigurationError(
            f"settings.AGENCY has no key {unknown[0]!r}. Known keys: {', '.join(_KNOWN)}."
        )
    return RuntimeSettings(**given)


def check(**_: Any) -> list[checks.CheckMessage]:
    """Django's system check of `settings.AGENCY`."""
    try:
        current()
    except ConfigurationError as error:
        return [checks.Error(str(error), hint="Correct the AGENCY setting.", id="agency.E010")]
    return []

"""The gates' rows: what every process has learned of a provider, for all of them.

A provider without trouble has no row and costs nothing but a look now and then. Each change reads and
writes one locked row in a transaction of its own, which no call to a provider is ever part of.
"""

import random
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from django.db import Error, InterfaceError, connections, transaction
from django.db.models import QuerySet

from agency.execution.claims import database
from agency.models import ProviderGate
from agency.models.clock import Now
from agency.redaction import safe_logger
from agency.runtime import gate_rules
from agency.runtime.gate_rules import Admitted, Gate, Refused

log = safe_logger("agency.runtime")
LOOK_SECONDS = 0.25
"""How long a process believes that a provider has no gate."""

_FREE = Admitted(Gate(), 0.0, is_probe=False)
_untroubled: dict[str, float] = {}


def admit(provider: str) -> Admitted | Refused:
    """Ask for a call to the provider to begin. A database that is away stops nobody here."""
    if time.monotonic() < _untroubled.get(provider, 0.0):
        return _FREE
    try:
        if not _rows(provider).exists():
            _untroubled[provider] = time.monotonic() + LOOK_SECONDS
            return _FREE
        return _in_a_transaction(lambda: _admit(provider))
    except (Error, InterfaceError) as exc:
        _away(exc)
        return _FREE


def shut_for(provider: str) -> float:
    """Seconds until the provider's gate opens; 0 if it is open."""
    try:
        row = _rows(provider).annotate(present=Now()).first()
    except (Error, InterfaceError) as exc:
        _away(exc)
        return 0.0
    if row is None or row.not_before is None:
        return 0.0
    return max(0.0, (row.not_before - row.present).total_seconds())


def failed(provider: str, *, retry_after: float | None, is_limit: bool, is_probe: bool) -> None:
    """A call failed in a way that a later one need not."""

    def write() -> None:
        _hold(provider)
        gate, now = _locked(provider)
        after = gate_rules.failed(
            gate,
            now,
            retry_after=retry_after,
            is_limit=is_limit,
            is_probe=is_probe,
            jitter=random.random(),
        )
        _store(provider, after)
        if after.is_shut(now) and not gate.is_shut(now):
            log.warning(
                "%s: not asked for %.1f s after %d failures in a row",
                provider,
                (after.not_before - now).total_seconds(),
                after.failures,
            )

    _untroubled.pop(provider, None)
    _write(write)


def answered(provider: str, admitted: Admitted) -> None:
    """A call was answered."""
    if admitted is _FREE:
        return

    def write() -> None:
        gate, now = _locked(provider)
        if gate is None:
            return
        after = gate_rules.answered(gate, now, is_probe=admitted.is_probe)
        if after is None:
            _rows(provider).delete()
        elif after != gate:
            _store(provider, after)

    _write(write)


def _admit(provider: str) -> Admitted | Refused:
    gate, now = _locked(provider)
    if gate is None:
        return _FREE
    if gate_rules.is_outdated(gate, now):
        _rows(provider).delete()
        return _FREE
    asked = gate_rules.admit(gate, now)
    if isinstance(asked, Admitted) and asked.gate != gate:
        _store(provider, asked.gate)
    return asked


def _hold(provider: str) -> None:
    """Make the row or lock it, in one statement: between two, an answer could delete it."""
    row = ProviderGate(provider=provider, changed_at=Now())
    ProviderGate.objects.using(database()).bulk_create(
        [row], update_conflicts=True, unique_fields=["provider"], update_fields=["changed_at"]
    )


def _locked(provider: str) -> tuple[Any, Any]:
    """The gate, locked to the end of the transaction, and the present moment; two `None`s without a row."""
    row = _rows(provider).select_for_update().annotate(present=Now()).first()
    if row is None:
        return None, None
    return Gate(row.failures, row.not_before, row.interval, row.ceiling, row.next_call_at), row.present


def _store(provider: str, gate: Gate) -> None:
    _rows(provider).update(**asdict(gate), changed_at=Now())


def _rows(provider: str) -> QuerySet[ProviderGate]:
    return ProviderGate.objects.using(database()).filter(provider=provider)


def _write(work: Callable[[], None]) -> None:
    try:
        _in_a_transaction(work)
    except (Error, InterfaceError) as exc:
        _away(exc)


def _in_a_transaction(work: Callable[[], Any]) -> Any:
    with transaction.atomic(using=database()):
        return work()


def _away(error: Exception) -> None:
    """A gate that cannot be read or written is no reason to stop a run."""
    log.warning("the gate of a provider could not be reached: %s", error)
    connections[database()].close()

"""Looks through a watch for a limited time, so that one that fails or hangs harms nobody but its own wait."""

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import connections

from agency.errors import RunCancelled
from agency.execution.claims import database
from agency.execution.storable import as_json, storable
from agency.mission.watches.declared import BaseWatch, Look, View
from agency.redaction import safe_logger

T = TypeVar("T")
log = safe_logger("agency.mission")
LONGEST_MEMORY = 8_000
POLL_SECONDS = 0.1
_hanging: set[str] = set()
_guard = threading.Lock()


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of a look: `failure` is the type of what it failed with, else `None`."""

    is_over: bool = False
    payload: Any = None
    memory: dict[str, Any] | None = None
    failure: str | None = None


def first_memory(watch: type[BaseWatch], view: View, cancelled: Callable[[], bool]) -> Seen:
    """The memory with which a wait begins; `RunCancelled` if the run must stop meanwhile."""
    return _seen(watch, view, lambda: Look(False, memory=watch().begin(view)), cancelled)


def look(
    watch: type[BaseWatch], view: View, memory: dict[str, Any] | None, cancelled: Callable[[], bool]
) -> Seen:
    """One look. Without `memory` the wait's beginning has failed, so it is made up for instead."""
    if memory is None:
        return first_memory(watch, view, cancelled)
    return _seen(watch, view, lambda: watch().look(view, dict(memory)), cancelled)


def _seen(
    watch: type[BaseWatch], view: View, work: Callable[[], Look], cancelled: Callable[[], bool]
) -> Seen:
    try:
        found = within(view.execution_id, work, watch.LOOK_SECONDS, cancelled)
        payload, memory = storable(found.payload), storable(found.memory)
        if len(as_json(memory)) > LONGEST_MEMORY:
            raise ValueError(f"the memory has more than {LONGEST_MEMORY:,} characters")
        as_json(payload)
    except Exception as exc:  # a project's code, as that of a tool: whatever it raises is its own failure
        log.warning("execution %s: the watch %s failed: %r", view.execution_id, watch.NAME, exc)
        return Seen(failure=type(exc).__name__)
    return Seen(bool(found.is_over), payload, memory)


def within(key: str, work: Callable[[], T], seconds: float, cancelled: Callable[[], bool]) -> T:
    """What `work` gives on a thread of its own; one that does not end in time is left behind."""
    if connections[database()].in_atomic_block:
        return work()  # a test's transaction, which no other thread can see
    with _guard:
        if key in _hanging:
            raise TimeoutError("the look before has not ended yet")
        _hanging.add(key)
    answer: queue.SimpleQueue[T | Exception] = queue.SimpleQueue()

    def run() -> None:
        try:
            answer.put(work())
        except Exception as exc:  # handed over to whoever waits
            answer.put(exc)
        finally:
            connections.close_all()
            with _guard:
                _hanging.discard(key)

    try:
        threading.Thread(target=run, name=f"agency-look-{key[:8]}", daemon=True).start()
    except RuntimeError:
        _hanging.discard(key)
        raise
    return _answer(answer, seconds, cancelled)


def _answer(answer: "queue.SimpleQueue[T | Exception]", seconds: float, cancelled: Callable[[], bool]) -> T:
    for _ in range(max(round(seconds / POLL_SECONDS), 1)):
        with suppress(queue.Empty):
            found = answer.get(timeout=POLL_SECONDS)
            if isinstance(found, Exception):
                raise found
            return found
        if cancelled():
            raise RunCancelled("stopped during a look")
    raise TimeoutError(f"no end within {seconds:g} seconds")

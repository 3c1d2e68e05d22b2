"""Sends wake-ups: the way from a committed row to a worker. Interfaces reach tasks only through here.

A wake-up is best effort and never makes a caller wait: a thread of its own publishes it. If it is
lost (broker down, process gone), the dispatcher or a polling worker finds the row all the same.
"""

import contextlib
import os
import queue
import sys
import threading
import time
from importlib import import_module
from typing import Any

from django.core import checks
from django.db import transaction
from django.utils.module_loading import import_string

from agency.enums import Wakeup
from agency.execution.claims import database
from agency.execution.signals import execution_due
from agency.redaction import safe_logger
from agency.runtime import conf, database_options, pools

log = safe_logger("agency.runtime")

CAPACITY = 10_000
PAUSE_AFTER_FAILURE = 5.0
_IDLE_SECONDS = 30.0
_HASTE = {"max_retries": 0, "socket_connect_timeout": 1.0, "socket_timeout": 1.0}
"""Without these, kombu tries for ever to reach a broker that is away."""


class Publisher:
    """The thread that publishes; after a failure it drops what comes for a few seconds."""

    def __init__(self) -> None:
        self._waiting: queue.Queue[tuple[str, int, Wakeup]] = queue.Queue(CAPACITY)
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._silent_until = 0.0
        self._connection: Any = None
        self._producer: Any = None

    def put(self, execution_id: str, expected_iteration: int, wakeup: Wakeup) -> None:
        """Take a wake-up to send; a full queue drops it."""
        if time.monotonic() < self._silent_until:
            return
        try:
            self._waiting.put_nowait((execution_id, expected_iteration, wakeup))
        except queue.Full:
            return
        with self._guard:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="agency-wake", daemon=True)
                self._thread.start()

    def flush(self, timeout: float) -> bool:
        """Whether everything taken so far was handled within `timeout` seconds."""
        until = time.monotonic() + timeout
        with self._waiting.all_tasks_done:
            while self._waiting.unfinished_tasks:
                left = until - time.monotonic()
                if left <= 0:
                    return False
                self._waiting.all_tasks_done.wait(left)
        return True

    def _run(self) -> None:
        while (taken := self._next()) is not None:
            try:
                if time.monotonic() >= self._silent_until:
                    self._send(*taken)
            finally:
                self._waiting.task_done()

    def _next(self) -> tuple[str, int, Wakeup] | None:
        """The next wake-up; after a while without any, the thread lets its connection go and ends."""
        while True:
            try:
                return self._waiting.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                with self._guard:
                    if self._waiting.empty():
                        self._disconnect()
                        self._thread = None
                        return None

    def _send(self, execution_id: str, expected_iteration: int, wakeup: Wakeup) -> None:
        try:
            if self._producer is None:
                self._connection = celery_app().connection_for_write(
                    connect_timeout=1.0, transport_options=_HASTE
                )
                self._producer = celery_app().amqp.Producer(self._connection, auto_declare=False)
            celery_app().send_task(
                pools.task_name(wakeup),
                (execution_id, expected_iteration),
                producer=self._producer,
                retry=False,
                ignore_result=True,
            )
        except Exception as exc:
            # Whatever the transport raises: the row is due, and that is what counts.
            self._disconnect()
            self._silent_until = time.monotonic() + PAUSE_AFTER_FAILURE
            log.warning("no wake-ups for %g s, the broker does not take them: %s", PAUSE_AFTER_FAILURE, exc)

    def _disconnect(self) -> None:
        connection, self._connection, self._producer = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.release()


_publishers: dict[int, Publisher] = {}
_lock = threading.Lock()


def publisher() -> Publisher:
    """This process's publisher."""
    with _lock:
        pid = os.getpid()
        if pid not in _publishers:
            _publishers.clear()
            _publishers[pid] = Publisher()
        return _publishers[pid]


_current: list[Any] = []


def connect() -> None:
    """Listen for executions that become due, and have the settings checked. Called when Django is ready.

    In a process that has loaded Celery (a worker, a project with its own app) the tasks are registered
    and the app is remembered: Celery's "current app" is one per thread, and wake-ups come from many.
    """
    checks.register(conf.check, "agency")
    checks.register(database_options.check, checks.Tags.database)
    checks.register(pools.check, "agency")
    execution_due.connect(_on_due, dispatch_uid="agency.runtime.queue")
    if "celery" in sys.modules:
        import_module("agency.runtime.tasks")
        _current[:] = [import_module("celery").current_app._get_current_object()]


def celery_app() -> Any:
    """The project's Celery app: `AGENCY["CELERY_APP"]`, else the one that was loaded with the project."""
    named = conf.current().CELERY_APP
    if named is not None:
        return import_string(named)
    default = import_module("celery").current_app
    known = _current[0] if _current else default
    return known if known.conf.broker_url else default


def has_celery() -> bool:
    """Whether the project names a Celery app or has loaded one."""
    return bool(conf.current().CELERY_APP or _current)


def has_broker() -> bool:
    """Whether the project's Celery app names a broker; without one, workers poll."""
    configured = celery_app().conf
    return bool(configured.broker_write_url or configured.broker_url) and not configured.task_always_eager


def wake(execution_id: str, expected_iteration: int, wakeup: Wakeup = Wakeup.RUN_EXECUTION) -> None:
    """Say that an execution is due; returns at once."""
    if has_broker():
        publisher().put(str(execution_id), expected_iteration, wakeup)


def _on_due(sender: Any, execution_id: str, expected_iteration: int, wakeup: Wakeup, **_: Any) -> None:
    def tell() -> None:
        wake(execution_id, expected_iteration, wakeup)

    transaction.on_commit(tell, using=database(), robust=True)

"""Ties a Celery worker's life to ours: polling beside the messages, and a clean end.

In a thread pool the worker's main process polls; in a prefork pool each child does, for itself.
"""

import os
from typing import Any

from celery.signals import (
    worker_process_init,
    worker_process_shutdown,
    worker_ready,
    worker_shutdown,
    worker_shutting_down,
)

from agency.runtime import conf
from agency.runtime.poll import Poller
from agency.runtime.slots import slots

_pollers: dict[int, Poller] = {}


def connect() -> None:
    """Listen to the worker's signals. Does nothing in a process that is no worker: none are sent there."""
    worker_process_init.connect(_on_child, dispatch_uid="agency.process_init")
    worker_process_shutdown.connect(_on_child_shutdown, dispatch_uid="agency.process_shutdown")
    worker_ready.connect(_on_ready, dispatch_uid="agency.ready")
    worker_shutting_down.connect(_on_shutting_down, dispatch_uid="agency.shutting_down")
    worker_shutdown.connect(_on_shutdown, dispatch_uid="agency.shutdown")


def start_polling(size: int) -> None:
    """Poll in this process with `size` slots, once."""
    if os.getpid() not in _pollers:
        slots().resize(size)
        _pollers[os.getpid()] = Poller(slots())
        _pollers[os.getpid()].start()


def _on_child(**_: Any) -> None:
    start_polling(1)


def _on_child_shutdown(**_: Any) -> None:
    """A child ends when its task has: what it polled is given back then."""
    _on_shutting_down()
    _on_shutdown()


def _on_ready(sender: Any, **_: Any) -> None:
    if type(sender.pool).__module__.endswith(".thread"):
        start_polling(sender.pool.limit)


def _on_shutting_down(**_: Any) -> None:
    poller = _pollers.get(os.getpid())
    if poller is not None:
        poller.stop()
        slots().close(conf.current().DRAIN_SECONDS)


def _on_shutdown(**_: Any) -> None:
    if os.getpid() in _pollers:
        slots().wait_empty(conf.current().DRAIN_SECONDS + 1.0)

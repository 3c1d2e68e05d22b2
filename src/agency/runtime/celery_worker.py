"""Ties a Celery worker's life to ours: polling beside the messages, and a clean end.

In a thread pool the worker's main process polls; in a prefork pool each child does, for itself, and hears
through a pipe that the worker ends, which Celery tells no child.
"""

import os
import select
import signal
import sys
import threading
from typing import Any

from celery.signals import (
    worker_init,
    worker_process_init,
    worker_process_shutdown,
    worker_ready,
    worker_shutdown,
    worker_shutting_down,
)

from agency.runtime import conf
from agency.runtime.ending import end_now
from agency.runtime.poll import Poller
from agency.runtime.pools import TASKS, unfit
from agency.runtime.slots import slots

LOOK_SECONDS = 0.2
_pollers: dict[int, Poller] = {}
_ending: list[int] = []
"""The pipe that becomes readable in every child when the worker ends: its two descriptors."""


def connect() -> None:
    """Listen to the worker's signals. Does nothing in a process that is no worker: none are sent there."""
    worker_init.connect(_on_init, dispatch_uid="agency.init")
    worker_process_init.connect(_on_child, dispatch_uid="agency.process_init")
    worker_process_shutdown.connect(_on_child_shutdown, dispatch_uid="agency.process_shutdown")
    worker_ready.connect(_on_ready, dispatch_uid="agency.ready")
    worker_shutting_down.connect(_on_shutting_down, dispatch_uid="agency.shutting_down")
    worker_shutdown.connect(_on_shutdown, dispatch_uid="agency.shutdown")


def start_polling(size: int) -> None:
    """Poll in this process with `size` slots, once."""
    if os.getpid() not in _pollers:
        slots().resize(size)
        _pollers[os.getpid()] = Poller(slots(), on_stuck=_ask_to_end)
        _pollers[os.getpid()].start()


def _ask_to_end() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def _on_init(sender: Any, **_: Any) -> None:
    if trouble := unfit(sender.app, sender.pool_cls):
        print(trouble, file=sys.stderr, flush=True)
        raise SystemExit(os.EX_CONFIG)
    _ending[:] = os.pipe()


def _on_child(**_: Any) -> None:
    signal.signal(signal.SIGTERM, lambda *_: _in_thread(_end_child))
    if _ending:
        _in_thread(_listen)
    start_polling(1)


def _listen() -> None:
    """In a child: when the worker ends, give back what runs here, so that Celery need not wait for it."""
    select.select([_ending[0]], [], [])
    if not _leave():
        end_now(0)


def _end_child() -> None:
    """In a child that is itself asked to end, as an init system asks every process of a service."""
    _leave()
    end_now(128 + signal.SIGTERM)


def _on_child_shutdown(**_: Any) -> None:
    """A child ends when its task has: what it polled is given back then."""
    _leave()


def _on_ready(sender: Any, **_: Any) -> None:
    if type(sender.pool).__module__.endswith(".thread"):
        start_polling(sender.pool.limit)


def _on_shutting_down(**_: Any) -> None:
    """On a thread: this is called from a signal handler, whose thread may hold any lock."""
    if _ending:
        os.write(_ending[1], b".")
    if os.getpid() in _pollers:
        _in_thread(_end_worker)


def _end_worker() -> None:
    """A run that does not stop would keep Celery waiting for its thread; tasks of others may end."""
    from celery.worker import state

    if _leave():
        return
    while any(request.name not in TASKS for request in list(state.active_requests)):
        threading.Event().wait(LOOK_SECONDS)
    end_now(0)


def _on_shutdown(**_: Any) -> None:
    """The last moment of a worker: what was polled must have been given back."""
    if os.getpid() in _pollers:
        slots().wait_empty(conf.current().DRAIN_SECONDS + 1.0)


def _leave() -> bool:
    """Whether all that ran here has ended, at the latest a moment after `DRAIN_SECONDS`."""
    poller = _pollers.get(os.getpid())
    if poller is None:
        return True
    poller.stop()
    return slots().leave()


def _in_thread(work: Any) -> None:
    threading.Thread(target=work, name="agency-end", daemon=True).start()

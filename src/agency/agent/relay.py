"""Lets the threads of tools have something done on the run's own thread, where journal and record are used.

Knows nothing of runs: it carries functions to the thread that serves it, and results back.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from agency.errors import RunCancelled, RunSignal

T = TypeVar("T")
Order = tuple[Callable[[], Any], "Future[Any]"]


class Relay:
    """Made on the thread that serves it; on that thread `do` is a plain call."""

    def __init__(self) -> None:
        self._home = threading.get_ident()
        self._inbox: SimpleQueue[Order | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False

    def do(self, work: Callable[[], T]) -> T:
        """The result of `work`, done on the serving thread; `RunCancelled` once nobody serves any more."""
        if threading.get_ident() == self._home:
            return work()
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RunCancelled("the run that this one belongs to has gone on without it")
            self._inbox.put((work, future))
        return future.result()

    def wake(self, _: object = None) -> None:
        """Make `serve` look up."""
        self._inbox.put(None)

    def serve(self, timeout: float) -> None:
        """Do what has been asked for; wait at most `timeout` seconds for the first order or `wake`."""
        try:
            order = self._inbox.get(timeout=timeout)
            while True:
                if order is not None:
                    _carry_out(order)
                order = self._inbox.get_nowait()
        except Empty:
            return

    def open(self) -> None:
        """Take orders again."""
        self._closed = False

    def close(self) -> None:
        """Refuse what is still asked for, and all that will be."""
        with self._lock:
            self._closed = True
        while not self._inbox.empty():
            order = self._inbox.get()
            if order is not None:
                order[1].set_exception(RunCancelled("the run that this one belongs to has stopped"))


def _carry_out(order: Order) -> None:
    work, future = order
    try:
        future.set_result(work())
    except BaseException as exc:
        future.set_exception(exc)
        if not isinstance(exc, Exception | RunSignal):
            raise

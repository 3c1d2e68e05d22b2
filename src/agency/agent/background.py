"""One background event loop per process, on which providers and async tools do their I/O.

The core is sync; requests still share connections and can be aborted because they all live on this
loop. Knows nothing of models or tools.
"""

import asyncio
import concurrent.futures
import math
import os
import queue
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from agency.agent.stopping import stop_signal
from agency.errors import RunCancelled

T = TypeVar("T")
_POLL = 0.1
_lock = threading.Lock()
_loops: dict[int, asyncio.AbstractEventLoop] = {}


def loop() -> asyncio.AbstractEventLoop:
    """The process's background loop, started on first use; a forked child gets one of its own."""
    pid = os.getpid()
    with _lock:
        if pid not in _loops:
            _loops.clear()
            _loops[pid] = _start()
        return _loops[pid]


def run(
    coro: Coroutine[Any, Any, T],
    *,
    timeout: float | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> T:
    """Run `coro` on the background loop and wait for its result.

    `timeout` is in seconds and raises `TimeoutError`; `cancelled` is polled ten times a second and
    raises `RunCancelled`. Either way the coroutine is cancelled first, which aborts its I/O.
    """
    job = _Job(coro, loop())
    try:
        return _answer(job, timeout, cancelled or stop_signal.get())
    except BaseException:
        job.cancel()
        raise


class _Job(Generic[T]):
    """A coroutine at work on the loop, for which one thread waits.

    `asyncio.run_coroutine_threadsafe` does the same at three times the price: it keeps a task and a future
    in step both ways.
    """

    def __init__(self, coro: Coroutine[Any, Any, T], home: asyncio.AbstractEventLoop) -> None:
        self._coro = coro
        self._home = home
        self._task: asyncio.Task[None] | None = None
        self._result: list[T] = []
        self._error: BaseException | None = None
        self._at_work = threading.Lock()
        self._at_work.acquire()
        home.call_soon_threadsafe(self._start)

    def ends_within(self, seconds: float) -> bool:
        """Wait for the end; true once, when it has come."""
        return self._at_work.acquire(timeout=min(seconds, threading.TIMEOUT_MAX))

    def result(self) -> T:
        """What came of it, when it has ended."""
        if self._error is None:
            return self._result[0]
        if isinstance(self._error, asyncio.CancelledError):
            raise concurrent.futures.CancelledError
        raise self._error

    def cancel(self) -> None:
        self._home.call_soon_threadsafe(self._cancel)

    def _start(self) -> None:
        self._task = self._home.create_task(self._work())

    async def _work(self) -> None:
        try:
            self._result.append(await self._coro)
        except asyncio.CancelledError as exc:
            self._error = exc
            raise
        except BaseException as exc:
            self._error = exc
        finally:
            self._at_work.release()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


def iterate(
    source: AsyncIterator[T],
    *,
    first: float,
    then: float,
    cancelled: Callable[[], bool] | None = None,
) -> Generator[T, None, None]:
    """The items of `source`, which runs on the background loop, as they come.

    Waits `first` seconds for the first item and `then` for each other, else raises `TimeoutError`;
    `cancelled` is as for `run`. Whoever stops reading stops the source, which aborts its I/O.
    """
    items: queue.SimpleQueue[T | _End] = queue.SimpleQueue()

    async def pump() -> None:
        async for item in source:
            items.put(item)

    future = asyncio.run_coroutine_threadsafe(pump(), loop())
    future.add_done_callback(lambda _: items.put(_End()))
    seconds, cancelled = first, cancelled or stop_signal.get()
    try:
        while not isinstance(item := _next(items, seconds, cancelled), _End):
            yield item
            seconds = then
        future.result()
    finally:
        future.cancel()


class _End:
    """Stands behind the last item."""


def _next(
    items: "queue.SimpleQueue[T | _End]", seconds: float, cancelled: Callable[[], bool] | None
) -> T | _End:
    until = time.monotonic() + seconds
    while cancelled is None or not cancelled():
        left = max(0.0, until - time.monotonic())
        try:
            return items.get(timeout=left if cancelled is None else min(_POLL, left))
        except queue.Empty:
            if time.monotonic() >= until:
                raise TimeoutError(f"nothing came for {seconds:g} seconds") from None
    raise RunCancelled("cancelled while waiting for an answer")


def _answer(job: _Job[T], timeout: float | None, cancelled: Callable[[], bool] | None) -> T:
    until = math.inf if timeout is None else time.monotonic() + timeout
    poll = math.inf if cancelled is None else _POLL
    while not job.ends_within(max(0.0, min(poll, until - time.monotonic()))):
        if cancelled is not None and cancelled():
            raise RunCancelled("cancelled while waiting for an answer")
        if time.monotonic() >= until:
            raise TimeoutError(f"no answer within {timeout:g} seconds")
    return job.result()


def _start() -> asyncio.AbstractEventLoop:
    made = _new_loop()
    threading.Thread(target=made.run_forever, name="agency-background", daemon=True).start()
    return made


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # there is none for Windows
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

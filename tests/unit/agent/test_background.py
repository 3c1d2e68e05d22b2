"""The background loop: results, errors, time limits and cancellation come back to the sync caller."""

import asyncio
import concurrent.futures
import multiprocessing
import threading
from collections.abc import AsyncIterator

import pytest

from agency.agent import background
from agency.errors import RunCancelled


class Probe:
    """A coroutine that never ends by itself, and knows when it has begun and when it was cancelled."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.cancelled = threading.Event()

    async def wait(self) -> None:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


async def double(value: int) -> int:
    return 2 * value


async def fail() -> None:
    raise LookupError("nothing there")


def test_a_result_comes_back() -> None:
    assert background.run(double(21)) == 42


def test_an_exception_comes_back() -> None:
    with pytest.raises(LookupError, match="nothing there"):
        background.run(fail())


async def give_up() -> None:
    raise asyncio.CancelledError


def test_a_coroutine_that_cancels_itself_is_told_of_as_cancelled() -> None:
    with pytest.raises(concurrent.futures.CancelledError):
        background.run(give_up())


def test_an_exception_that_is_no_error_comes_back_and_leaves_the_loop_at_work() -> None:
    with pytest.raises(SystemExit):
        background.run(leave())
    assert background.run(double(2)) == 4


async def leave() -> None:
    raise SystemExit


def test_a_time_limit_cancels_the_coroutine() -> None:
    probe = Probe()
    with pytest.raises(TimeoutError, match="1 seconds"):
        background.run(probe.wait(), timeout=1.0)
    assert probe.cancelled.wait(60)


def test_a_cancelled_run_cancels_the_coroutine() -> None:
    probe = Probe()
    with pytest.raises(RunCancelled):
        background.run(probe.wait(), cancelled=probe.begun.is_set)
    assert probe.cancelled.wait(60)


def test_the_stop_signal_of_the_surroundings_counts() -> None:
    probe = Probe()
    token = background.stop_signal.set(probe.begun.is_set)
    try:
        with pytest.raises(RunCancelled):
            background.run(probe.wait())
    finally:
        background.stop_signal.reset(token)


def test_a_process_has_one_loop() -> None:
    assert background.loop() is background.loop()


def _answer_in_child(queue: "multiprocessing.Queue[int]") -> None:
    queue.put(background.run(double(4), timeout=60))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_a_forked_child_gets_a_loop_of_its_own() -> None:
    background.run(double(1))
    fork = multiprocessing.get_context("fork")
    queue: multiprocessing.Queue[int] = fork.Queue()
    child = fork.Process(target=_answer_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == 8
    child.join(60)
    assert child.exitcode == 0


async def counting(probe: Probe, count: int) -> AsyncIterator[int]:
    for number in range(count):
        yield number
    await probe.wait()


async def failing() -> AsyncIterator[int]:
    yield 1
    raise LookupError("in the source")


async def three() -> AsyncIterator[int]:
    for number in range(3):
        yield number


async def endless() -> AsyncIterator[int]:
    while True:
        yield 1
        await asyncio.sleep(0)


def test_a_source_that_never_pauses_can_be_stopped() -> None:
    looks = iter(range(10))
    items = background.iterate(endless(), first=60, then=60, cancelled=lambda: next(looks) == 9)
    with pytest.raises(RunCancelled):
        sum(items)


def test_items_come_in_order_to_the_end() -> None:
    assert list(background.iterate(three(), first=60, then=60)) == [0, 1, 2]


def test_what_the_source_raises_comes_behind_its_items() -> None:
    items = background.iterate(failing(), first=60, then=60)
    assert next(items) == 1
    with pytest.raises(LookupError, match="in the source"):
        next(items)


def test_each_item_has_a_deadline_of_its_own_and_a_late_source_is_cancelled() -> None:
    probe = Probe()
    items = background.iterate(counting(probe, 2), first=60, then=1.0)
    assert [next(items), next(items)] == [0, 1]
    with pytest.raises(TimeoutError, match=r"nothing came for 1 seconds"):
        next(items)
    assert probe.cancelled.wait(60)


def test_who_stops_reading_stops_the_source() -> None:
    probe = Probe()
    items = background.iterate(counting(probe, 1), first=60, then=60)
    next(items)
    assert probe.begun.wait(60)
    items.close()
    assert probe.cancelled.wait(60)


def test_a_cancelled_reader_stops_waiting_and_stops_the_source() -> None:
    probe = Probe()
    items = background.iterate(counting(probe, 0), first=60, then=60, cancelled=probe.begun.is_set)
    with pytest.raises(RunCancelled):
        next(items)
    assert probe.cancelled.wait(60)

"""The background loop: results, errors, time limits and cancellation come back to the sync caller."""

import asyncio
import multiprocessing
import threading

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


def test_a_time_limit_cancels_the_coroutine() -> None:
    probe = Probe()
    with pytest.raises(TimeoutError, match=r"0\.05 seconds"):
        background.run(probe.wait(), timeout=0.05)
    assert probe.cancelled.wait(5)


def test_a_cancelled_run_cancels_the_coroutine() -> None:
    probe = Probe()
    with pytest.raises(RunCancelled):
        background.run(probe.wait(), cancelled=probe.begun.is_set)
    assert probe.cancelled.wait(5)


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
    queue.put(background.run(double(4), timeout=10))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_a_forked_child_gets_a_loop_of_its_own() -> None:
    background.run(double(1))
    fork = multiprocessing.get_context("fork")
    queue: multiprocessing.Queue[int] = fork.Queue()
    child = fork.Process(target=_answer_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=15) == 8
    child.join(10)
    assert child.exitcode == 0

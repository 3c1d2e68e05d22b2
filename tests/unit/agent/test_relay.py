"""Work done on the thread that serves a relay, for threads that may not do it themselves."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from agency.agent.relay import Relay
from agency.errors import RunCancelled, RunReleased


def test_on_its_own_thread_it_is_a_plain_call() -> None:
    assert Relay().do(threading.get_ident) == threading.get_ident()


def test_work_of_another_thread_is_done_by_the_one_that_serves() -> None:
    relay = Relay()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(relay.do, threading.get_ident)
        while not asked.done():
            relay.serve(1)
    assert asked.result() == threading.get_ident()


@pytest.mark.parametrize("error", [ValueError("no"), RunReleased("drain")])
def test_what_goes_wrong_goes_back_to_who_asked(error: BaseException) -> None:
    def fail() -> None:
        raise error

    relay = Relay()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(relay.do, fail)
        while not asked.done():
            relay.serve(1)
    assert asked.exception() is error


def test_ctrl_c_while_serving_reaches_both() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    relay = Relay()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(relay.do, interrupt)
        with pytest.raises(KeyboardInterrupt):
            relay.serve(5)
        assert isinstance(asked.exception(5), KeyboardInterrupt)


def test_a_closed_relay_refuses_what_waits_and_what_comes_until_it_is_opened() -> None:
    relay = Relay()
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(relay.do, lambda: 1)
        relay.wake()
        relay.close()
        assert isinstance(waiting.exception(5), RunCancelled)
        assert isinstance(pool.submit(relay.do, lambda: 1).exception(5), RunCancelled)
        relay.open()
        late = pool.submit(relay.do, lambda: 2)
        while not late.done():
            relay.serve(1)
    assert late.result() == 2


def test_a_wake_ends_the_wait() -> None:
    relay = Relay()
    threading.Timer(0.01, relay.wake).start()
    relay.serve(30)

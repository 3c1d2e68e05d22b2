"""Two things at the same moment, for the tests of races."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections


@pytest.fixture
def at_once() -> Iterator[Callable[..., list[Any]]]:
    """`at_once(one, other)`: what both return, begun at the same moment on threads of their own."""
    barrier = threading.Barrier(2)

    def begin(work: Callable[[], Any]) -> Any:
        barrier.wait(60)
        return work()

    with ThreadPoolExecutor(2) as pool:
        yield lambda *works: [made.result(60) for made in [pool.submit(begin, work) for work in works]]
        closers = [pool.submit(begin, connections.close_all) for _ in range(2)]
        for closer in closers:
            closer.result(60)

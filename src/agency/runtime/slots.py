"""How many executions this process runs at once, shared by what messages wake and what polling finds.

A wake-up that finds no free slot does nothing: the row stays due and a later look finds it.
"""

import os
import threading
import uuid

from django.db import close_old_connections

from agency.runtime import conf
from agency.runtime.alone import Lodgers
from agency.runtime.beat import beat
from agency.runtime.body import run_claimed
from agency.runtime.claim import claim

BUSY = "busy"
NOTHING = "nothing to do"


class Slots:
    """A counted number of places; once closed, none is given any more."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._free = size
        self._open = True
        self._changed = threading.Condition()
        self.lodgers = Lodgers()
        self.freed = threading.Event()
        """Set whenever a place is given back, so that a poller need not wait to fill it."""

    def resize(self, size: int) -> None:
        """Have `size` places from now on; runs that hold one go on."""
        with self._changed:
            self._free += size - self.size
            self.size = size
            self._changed.notify_all()

    def take(self) -> bool:
        """Take a place if one is free and the process is not stopping."""
        with self._changed:
            if not self._open or self._free <= 0:
                return False
            self._free -= 1
            return True

    def give_back(self, *, unused: bool = False) -> None:
        """Free a place; one that was `unused` is no news to the poller that had nothing to fill it with."""
        with self._changed:
            self._free += 1
            self._changed.notify_all()
        if not unused:
            self.freed.set()

    def run(self, execution_id: str) -> None:
        """Run this one execution, which is reserved for this process, on this thread."""
        if not self.take():
            return
        try:
            claimed = claim(execution_id, reserved=True)
            if claimed is not None:
                run_claimed(claimed)
        finally:
            self.give_back()

    def close(self, grace: float) -> None:
        """Give out no more places; runs in progress give their claims back within `grace` seconds."""
        with self._changed:
            self._open = False
        self.lodgers.end()
        beat().drain(grace)

    def leave(self) -> bool:
        """End what runs here: at its next call, after `DRAIN_SECONDS`, or else by giving its claim back.

        `False` where a thread does not stop: the process must then end without waiting for it.
        """
        grace = conf.current().DRAIN_SECONDS
        self.close(grace)
        if self.wait_empty(grace + 1.0):
            return True
        beat().give_back()
        return False

    def has_too_many_stuck(self) -> bool:
        """Whether half of the places are taken by runs that do not stop, so that a new process is better."""
        return beat().stuck() * 2 >= max(self.size, 1)

    def wait_empty(self, timeout: float) -> bool:
        """Whether every run has ended, at the latest in `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._free == self.size, timeout)


_slots: dict[int, Slots] = {}
_guard = threading.Lock()


def slots() -> Slots:
    """This process's slots: `WORKER_SLOTS` of them, until a worker that knows better resizes them."""
    with _guard:
        pid = os.getpid()
        if pid not in _slots:
            _slots.clear()
            _slots[pid] = Slots(conf.current().WORKER_SLOTS)
        return _slots[pid]


def run_woken(execution_id: str, expected_iteration: int) -> str:
    """What a wake-up does: if there is room, claim and run on this thread, the row that it names or another.

    Wake-ups come in the order in which they were sent, a large batch's before a small one's. So each one
    stands for "there is work", and whose turn it is decides which.
    """
    if not slots().take():
        return BUSY
    close_old_connections()
    try:
        claimed = claim(uuid.UUID(execution_id), expected_iteration, in_turn_only=True, beside=True)
        return NOTHING if claimed is None else run_claimed(claimed).value
    finally:
        close_old_connections()
        slots().give_back()

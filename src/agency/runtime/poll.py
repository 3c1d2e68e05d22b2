"""Finds work in the database: beside Celery in each worker, or alone (`agency worker --poll`).

Shares the process's slots with what messages wake, so that executions run on without any broker.
"""

import signal
import threading
from collections.abc import Callable

from django.db import Error, InterfaceError, close_old_connections, connections

from agency.execution.claims import Claim, database
from agency.redaction import safe_logger
from agency.runtime import conf, lifeline
from agency.runtime.body import run_claimed
from agency.runtime.claim import claim
from agency.runtime.hint import hint
from agency.runtime.slots import Slots, slots
from agency.runtime.sweep import Sweeper

log = safe_logger("agency.runtime")


class Poller:
    """Claims the next due execution whenever a slot is free and runs it on a thread of its own."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._stopped = threading.Event()
        self._sweeper = Sweeper()

    def start(self) -> None:
        """Poll on a thread beside something else."""
        threading.Thread(target=self.run, name="agency-poll", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()
        self._slots.freed.set()

    def run(self) -> None:
        """Look until stopped. A database that is away is waited for."""
        try:
            while not self._stopped.is_set():
                found = self._look()
                lifeline.beat()
                if not found and not self._stopped.is_set():
                    self._slots.freed.wait(conf.current().POLL_SECONDS)
        finally:
            hint().close()
            connections[database()].close()

    def _look(self) -> bool:
        """Whether something was found, so that it is worth looking again at once."""
        try:
            close_old_connections()
            self._slots.freed.clear()
            hint().tend()
            self._sweeper.turn()
            return self.take()
        except (Error, InterfaceError) as exc:
            log.warning("poll: the database is away, trying again: %s", exc)
            connections[database()].close()
            return False

    def take(self) -> bool:
        """Claim one due execution and start it; `False` if there is none or no slot is free."""
        if not self._slots.take():
            return False
        try:
            claimed = claim()
        except BaseException:
            self._slots.give_back(unused=True)
            raise
        if claimed is None:
            self._slots.give_back(unused=True)
            return False
        name = f"agency-run-{claimed.execution_id[:8]}"
        threading.Thread(target=self._run, args=(claimed,), name=name, daemon=True).start()
        return True

    def _run(self, claimed: Claim) -> None:
        try:
            run_claimed(claimed)
        finally:
            connections.close_all()
            self._slots.give_back()


def run(threads: int | None = None) -> None:
    """A worker without Celery: work until SIGTERM or Ctrl-C, `threads` executions at once.

    By default as many as `WORKER_SLOTS`. At the end, runs get `DRAIN_SECONDS` before they give their
    claims back.
    """
    places = slots()
    if threads is not None:
        places.resize(threads)
    poller = Poller(places)
    end_on_signal(poller.stop)
    poller.run()
    grace = conf.current().DRAIN_SECONDS
    places.close(grace)
    places.wait_empty(grace + 1.0)


def end_on_signal(stop: Callable[[], None]) -> None:
    """Call `stop` on SIGTERM and Ctrl-C: on another thread, since the interrupted one may hold its locks."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: threading.Thread(target=stop).start())

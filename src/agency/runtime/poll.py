"""Finds work in the database: beside Celery in each worker, or alone (`agency worker --poll`).

Shares the process's slots with what messages wake, so that executions run on without any broker.
"""

import os
import threading
import time
from collections.abc import Callable
from typing import Any

from django.db import Error, InterfaceError, close_old_connections, connections

from agency.execution import store
from agency.execution.claims import database
from agency.redaction import safe_logger
from agency.runtime import conf, lifeline
from agency.runtime.alone import reserve
from agency.runtime.body import run_claimed
from agency.runtime.claim import claim
from agency.runtime.ending import end_now, end_on_signal
from agency.runtime.hint import hint
from agency.runtime.slots import Slots, slots
from agency.runtime.sweep import Sweeper

log = safe_logger("agency.runtime")
RESTART_SECONDS = 1.0
ALONE_SECONDS = 1.0


class Poller:
    """Claims the next due execution whenever a slot is free and runs it on a thread of its own.

    When too many runs do not stop, it does, after a call of `on_stuck`: the process must come to an end.
    """

    def __init__(self, slots: Slots, on_stuck: Callable[[], object] = lambda: None) -> None:
        self._slots = slots
        self._stopped = threading.Event()
        self._sweeper = Sweeper()
        self._on_stuck = on_stuck
        self._alone_at = 0.0

    def start(self) -> None:
        """Poll on a thread beside something else, which an unforeseen error does not end for good."""
        threading.Thread(target=self._keep_running, name="agency-poll", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()
        self._slots.freed.set()

    def _keep_running(self) -> None:
        try:
            self.run()
        finally:
            if not self._stopped.wait(RESTART_SECONDS):
                log.error("polling ended by an error and is started again")
                self.start()

    def run(self) -> None:
        """Look until stopped. A database that is away is waited for."""
        try:
            while not self._stopped.is_set():
                found = self._look()
                lifeline.beat()
                if self._slots.has_too_many_stuck():
                    log.error("half of the places are taken by runs that do not stop: this process ends")
                    self.stop()
                    self._on_stuck()
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
            return self.take_alone() or self.take()
        except (Error, InterfaceError) as exc:
            log.warning("poll: the database is away, trying again: %s", exc)
            connections[database()].close()
            return False

    def take(self) -> bool:
        """Claim one due execution and start it; `False` if there is none or no slot is free."""
        if not self._slots.take():
            return False
        try:
            claimed = claim(beside=True)
        except BaseException:
            self._slots.give_back(unused=True)
            raise
        if claimed is None:
            self._slots.give_back(unused=True)
            return False
        if self._start(claimed.execution_id, lambda: run_claimed(claimed)):
            return True
        store.release(claimed, delay=RESTART_SECONDS)
        return False

    def take_alone(self) -> bool:
        """Start a process for a due execution that must run alone; `False` if there is none or no slot."""
        if time.monotonic() < self._alone_at or not self._slots.take():
            return False
        self._alone_at = time.monotonic() + ALONE_SECONDS
        try:
            execution_id = reserve()
        except BaseException:
            self._slots.give_back(unused=True)
            raise
        if execution_id is None:
            self._slots.give_back(unused=True)
            return False
        return self._start(execution_id, lambda: self._slots.lodgers.run(execution_id))

    def _start(self, execution_id: str, work: Callable[[], Any]) -> bool:
        """Have `work` done in the place that was taken. A machine without threads left gives it back."""
        thread = threading.Thread(
            target=self._run, args=(work,), name=f"agency-run-{execution_id[:8]}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as exc:
            log.error("execution %s is put back, no thread can be started: %s", execution_id, exc)
            self._slots.give_back(unused=True)
            return False
        return True

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            work()
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
    stuck = places.has_too_many_stuck()
    if not places.leave():
        end_now(os.EX_TEMPFAIL if stuck else 0)

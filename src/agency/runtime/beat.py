"""Keeps the claims of this process alive: one thread with its own connection, one UPDATE for all of them.

The same UPDATE brings back what a run must know: that its claim is gone, that someone asked for a
cancel, that its deadline has passed. It lives outside the runs, so no busy tool can starve it.
"""

import contextlib
import os
import threading
import time
import uuid
from collections.abc import Iterator

from django.db import Error, InterfaceError, connections

from agency.errors import StaleExecution
from agency.execution import store
from agency.execution.claims import Claim, database
from agency.redaction import safe_logger
from agency.runtime import conf, leases
from agency.runtime.watch import RowWatch, StopReason, Watch

log = safe_logger("agency.runtime")
RESTART_SECONDS = 1.0
IDLE_BEATS = 3
"""So many beats without a claim end the thread: to start one for each short claim costs more than to wait."""
GIVE_BACK_SECONDS = 2.0


class Beat:
    """The beat of one process. Its thread runs while there are claims, and for a few beats more.

    It opens its connection for the first beat that finds claims, and closes it with the last claim.

    A run that was told to stop and does not leave is fenced off: its lease ends, so that the row can be
    closed or go on elsewhere, and what its thread still writes is refused.
    """

    def __init__(self) -> None:
        self._watches: dict[uuid.UUID, Watch] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._draining: float | None = None
        self._has_beaten = False
        """Whether the thread has used its connection since it last closed it."""

    @contextlib.contextmanager
    def watching(self, claim: Claim) -> Iterator[Watch]:
        """Renew the claim until the block ends; the watch says whether to stop."""
        if connections[database()].in_atomic_block:
            yield RowWatch(claim)
            return
        watch = Watch(claim, conf.current().LEASE_SECONDS)
        with self._changed:
            if self._draining is not None:
                watch.stop(StopReason.DRAIN)
            self._watches[claim.claim_id] = watch
            try:
                self._start()
            except RuntimeError as exc:
                log.error("%s: is given back, the machine starts no more threads: %s", claim, exc)
                watch.stop(StopReason.DRAIN)
        try:
            yield watch
        finally:
            with self._changed:
                self._watches.pop(claim.claim_id, None)
                if self._is_over():
                    self._changed.notify_all()

    def drain(self, grace: float) -> None:
        """The worker stops: runs give their claims back before their next call, or after `grace` seconds."""
        with self._changed:
            self._draining = grace
            for watch in self._watches.values():
                watch.stop(StopReason.DRAIN, grace)

    def running(self) -> int:
        """How many claims this process holds."""
        with self._changed:
            return len(self._watches)

    def claims(self) -> list[uuid.UUID]:
        """The claims that this process runs."""
        with self._changed:
            return list(self._watches)

    def stuck(self) -> int:
        """How many threads are taken by runs that were told to stop and do not leave."""
        patience = conf.current().STUCK_SECONDS
        with self._changed:
            return sum(watch.is_stuck(patience) for watch in self._watches.values())

    def give_back(self) -> None:
        """For a process that ends now: put the claims of runs that have not left back, uncounted.

        For a moment only: what the database does not take by then is left to the leases.
        """
        with self._changed:
            claims = [watch.claim for watch in self._watches.values() if not watch.abandoned]
        giving = threading.Thread(target=_release, args=(claims,), name="agency-give-back", daemon=True)
        giving.start()
        giving.join(GIVE_BACK_SECONDS)
        if giving.is_alive():
            log.warning("%d claims are left to their leases: the database does not answer", len(claims))

    def _start(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="agency-beat", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:
                self._thread = None
                raise

    def _run(self) -> None:
        try:
            while watches := self._next():
                self._renew(watches)
        finally:
            connections[database()].close()
            self._go_on_if_needed()

    def _go_on_if_needed(self) -> None:
        """After an error that nobody foresaw, a new thread takes over: claims must not die of it."""
        with self._changed:
            if self._thread is threading.current_thread():
                log.error("the beat ended by an error and is started again")
                self._changed.wait(RESTART_SECONDS)
                self._thread = None
                if self._watches:
                    self._start()

    def _next(self) -> dict[uuid.UUID, Watch]:
        """The watches to renew after a pause of one beat; none for a few beats ends the thread."""
        for _ in range(IDLE_BEATS):
            with self._changed:
                is_over = self._changed.wait_for(self._is_over, conf.current().BEAT_SECONDS)
                watches = self._taken()
            if is_over:
                connections[database()].close()
            if watches:
                return watches
        with self._changed:
            watches = self._taken()
            if not watches:
                self._thread = None
            return watches

    def _taken(self) -> dict[uuid.UUID, Watch]:
        self._has_beaten = bool(self._watches)
        return dict(self._watches)

    def _is_over(self) -> bool:
        """Whether the connection, which has served, has no claims to serve any more."""
        return self._has_beaten and not self._watches

    def _renew(self, watches: dict[uuid.UUID, Watch]) -> None:
        asked_at = time.monotonic()
        try:
            watches = self._fence_off(watches)
            renewed = leases.renew(list(watches))
            locked = [claim_id for claim_id in watches if claim_id not in renewed]
            told = renewed | leases.look(locked)
        except (Error, InterfaceError) as exc:
            log.warning("beat of %d claims failed, trying again: %s", len(watches), exc)
            connections[database()].close()
            return
        for claim_id, watch in watches.items():
            if claim_id not in told:
                watch.stop(StopReason.LOST)
                continue
            if claim_id in renewed:
                watch.renew(asked_at)
            cancelled, late = told[claim_id]
            if cancelled:
                watch.stop(StopReason.CANCELLED)
            elif late:
                watch.stop(StopReason.DEADLINE)

    def _fence_off(self, watches: dict[uuid.UUID, Watch]) -> dict[uuid.UUID, Watch]:
        """End the leases of runs that do not leave; the others."""
        patience = conf.current().STUCK_SECONDS
        stuck = {claim_id: watch for claim_id, watch in watches.items() if watch.is_stuck(patience)}
        newly = {claim_id: watch for claim_id, watch in stuck.items() if not watch.abandoned}
        leases.end(list(newly))
        for watch in newly.values():
            watch.abandoned = True
            log.error("%s: its thread does not stop (%s) and is left behind", watch.claim, watch.reason)
        return {claim_id: watch for claim_id, watch in watches.items() if claim_id not in stuck}


def _release(claims: list[Claim]) -> None:
    try:
        for claim in claims:
            try:
                store.release(claim)
            except StaleExecution:
                log.info("%s: was given back already", claim)
            except (Error, InterfaceError) as exc:
                log.warning("%s: is left to its lease: %s", claim, exc)
    finally:
        connections[database()].close()


_beats: dict[int, Beat] = {}
_guard = threading.Lock()


def beat() -> Beat:
    """This process's beat; a forked child has one of its own."""
    with _guard:
        pid = os.getpid()
        if pid not in _beats:
            _beats.clear()
            _beats[pid] = Beat()
        return _beats[pid]

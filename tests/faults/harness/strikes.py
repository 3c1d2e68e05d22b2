"""The faults themselves: kills, stops, ends, floods and cuts, each of a process or server that is at work."""

import random
import signal
import time
from collections.abc import Callable
from typing import Any

from tests.faults.harness.backends import Backend
from tests.faults.harness.brokers import RabbitMq, Valkey
from tests.faults.harness.fleet import Fleet, Member
from tests.faults.harness.nemesis import Record
from tests.faults.proxy import Proxy

Held = Callable[[], dict[int, list[tuple[str, int]]]]
"""The claims of each process: execution ids and fences by pid."""
BROKER_AWAY = 10.0
PATIENCE = 30.0
"""Seconds after which a cut that nothing has walked into is taken back."""
DUPLICATES = 5
OVERSLEPT = 2.0
"""Seconds that a stopped worker sleeps beyond one and a half leases."""


class Strikes:
    """`lease` is in seconds; `spare` workers must be ready beside one that is struck."""

    def __init__(
        self,
        fleet: Fleet,
        backend: Backend,
        record: Record,
        held: Held,
        wake: Callable[[str], None],
        *,
        seed: int,
        lease: float,
        spare: int,
    ) -> None:
        self._fleet, self._backend, self._held, self._record = fleet, backend, held, record
        self._chance = random.Random(f"victims/{seed}")
        self._wake_up_call = wake
        self._lease, self._spare = lease, spare
        self._armed = False
        self._kinds: dict[str, Callable[[], bool]] = {
            "kill_worker": self._kill_worker,
            "kill_dispatcher": self._kill_dispatcher,
            "stop_worker": self._stop_worker,
            "end_worker": self._end_worker,
            "flush_broker": self._flush_broker,
            "stop_broker": self._stop_broker,
            "restart_database": self._restart_database,
            "cut_commit": self._cut_commit,
        }

    def strike(self, fault: str) -> bool:
        """Whether there was something to hit."""
        return self._kinds[fault]()

    def duplicate(self, ids: list[str], latest: float) -> None:
        """Each wake-up again and again, in no order, and up to `latest` seconds late."""
        for execution_id in ids:
            for _ in range(DUPLICATES):
                wait = self._chance.choice((0.0, self._chance.uniform(0, 2), self._chance.uniform(0, latest)))
                self._record.after(wait, lambda one=execution_id: self._wake(one))

    # -- processes -------------------------------------------------------------------------------

    def _kill_worker(self) -> bool:
        victim = self._busy_worker()
        return victim is not None and self._kill(victim)

    def _kill_dispatcher(self) -> bool:
        ready = self._fleet.ready("dispatcher")
        return bool(ready) and self._kill(self._chance.choice(ready))

    def _kill(self, victim: Member) -> bool:
        at, lodgers = time.time(), victim.children()
        victim.struck = True
        victim.signal(signal.SIGKILL)
        victim.process.wait()
        self._note_of(f"kill_{victim.role}", victim, at, lodgers=lodgers)
        return True

    def _stop_worker(self) -> bool:
        """A process that sleeps through its lease and wakes up as if nothing had happened."""
        victim = self._busy_worker()
        if victim is None:
            return False
        at = time.time()
        victim.stopped = True
        victim.signal(signal.SIGSTOP)
        self._note_of("stop_worker", victim, at)
        # Longer than others may take to go on with its work, or a slow recovery would never be seen.
        self._record.after(self._lease * 1.5 + OVERSLEPT, lambda: self._wake_up(victim, at))
        return True

    def _wake_up(self, victim: Member, since: float) -> None:
        victim.signal(signal.SIGCONT)
        victim.stopped = False
        # It may have slept with the one write lock of SQLite in its hand.
        self._record.note("woken", pid=victim.pid, since=since, one_writer=self._backend.postgres is None)

    def _end_worker(self) -> bool:
        """A deploy: the worker is asked to end and another takes its place."""
        victim = self._busy_worker()
        if victim is None:
            return False
        at = time.time()
        victim.leaving = True
        victim.signal(signal.SIGTERM)
        self._note_of("end_worker", victim, at)
        self._record.after(0.1, lambda: self._await_end(victim, at))
        return True

    def _await_end(self, victim: Member, at: float) -> None:
        """What it left behind, once it is gone."""
        code = victim.process.poll()
        if code is None:
            self._record.after(0.1, lambda: self._await_end(victim, at))
            return
        left = len(self._held().get(victim.pid, []))
        self._record.note("ended", pid=victim.pid, code=code, seconds=round(time.time() - at, 2), left=left)

    def _busy_worker(self) -> Member | None:
        """A worker that holds claims, so that the strike hits work; enough others must be left to take it."""
        ready, holding = self._fleet.ready("worker"), self._held()
        busy = [one for one in ready if one.pid in holding]
        return self._chance.choice(busy) if busy and len(ready) > self._spare else None

    def _note_of(self, fault: str, victim: Member, at: float, **what: Any) -> None:
        self._record.note(fault, at, pid=victim.pid, held=self._held().get(victim.pid, []), **what)

    # -- servers ---------------------------------------------------------------------------------

    def _flush_broker(self) -> bool:
        broker = self._running_broker()
        return broker is not None and self._noted("flush_broker", lambda: broker.flush(self._fleet.queue))

    def _stop_broker(self) -> bool:
        """It is away for a while."""
        broker = self._running_broker()
        if broker is None:
            return False
        self._record.after(BROKER_AWAY, broker.server.start)
        return self._noted("stop_broker", lambda: broker.server.stop(signal.SIGKILL))

    def _running_broker(self) -> Valkey | RabbitMq | None:
        broker = self._backend.broker
        return broker if broker is not None and broker.server.running else None

    def _restart_database(self) -> bool:
        """As after a crash of the server: no transaction in flight survives."""
        server = self._backend.postgres
        assert server is not None
        self._noted("restart_database", lambda: server.stop(signal.SIGQUIT))
        server.start()
        return True

    def _cut_commit(self) -> bool:
        """One of the next commits never arrives, or arrives and nobody is told."""
        proxy = self._backend.proxy
        assert proxy is not None
        if self._armed:
            return False
        self._armed = True
        proxy.cut(arrives=self._chance.random() < 0.7, only=b"COMMIT")
        self._await_cut(proxy, proxy.struck, time.monotonic() + PATIENCE)
        return True

    def _await_cut(self, proxy: Proxy, before: int, until: float) -> None:
        if proxy.struck == before and time.monotonic() < until:
            self._record.after(0.02, lambda: self._await_cut(proxy, before, until))
            return
        self._armed = False
        proxy.spare()
        if proxy.struck > before:
            self._record.note("cut_commit")

    def _noted(self, fault: str, do: Callable[[], Any]) -> bool:
        at = time.time()
        do()
        self._record.note(fault, at)
        return True

    def _wake(self, execution_id: str) -> None:
        self._wake_up_call(execution_id)
        self._record.note("duplicate_wake_up")

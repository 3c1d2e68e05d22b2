"""Tells sockets what was written: after the commit, best effort, by a thread of its own.

Only the numbers of events are handed over; the thread reads them back from the table. So no commit and no
worker waits for a socket, and where a notice is lost, nothing is: the table holds it.
"""

import asyncio
import atexit
import contextlib
import json
import os
import threading
import time
import uuid
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from django.conf import settings
from django.core import checks
from django.db import connections

from agency.enums import EventKind
from agency.execution.claims import database, uuid_value
from agency.execution.signals import events_written
from agency.mission import notices
from agency.mission.notices import Lifecycle, Notice, Whose
from agency.models import Event, Execution
from agency.redaction import safe_logger

log = safe_logger("agency.runtime")

HANDLER = "agency.notices"
"""The type of the channel layer's messages, and so the method of its consumers; `notices` holds a list."""
CAPACITY = 10_000
ROUND_SECONDS = 0.1
"""Between two looks at the table: what an execution writes in that time is read and told at once."""
READ_AT_ONCE = 100
SENT_AT_ONCE = 50
"""Notices of a message: one for each would cost more than all else that is told."""
SEND_SECONDS = 1.0
PAUSE_AFTER_FAILURE = 5.0
FAREWELL_SECONDS = 0.5
"""What a process that ends grants to its last notices."""
_IDLE_SECONDS = 5.0
_PUBSUB = "channels_redis.pubsub.RedisPubSubChannelLayer"
_UNFIT = {
    "channels_redis.core.RedisChannelLayer": "drops messages for readers that are slow",
    "channels.layers.InMemoryChannelLayer": "reaches no socket of another process or thread",
}

Numbers = dict[str, tuple[int, int]]
"""The first and last event of each execution that is to be told."""
_WANTED = {"postgresql": "(%s::uuid, %s::bigint, %s::bigint)", "sqlite": "(%s, %s, %s)"}
_LIFECYCLE = f"""
    WITH wanted(id, first, last) AS (VALUES {{wanted}})
    SELECT e.id, e.mission_id, e.owner_id, v.seq, v.kind, v.iteration, v.timestamp, v.data
    FROM wanted w
    JOIN {Execution._meta.db_table} e ON e.id = w.id
    LEFT JOIN {Event._meta.db_table} v ON v.execution_id = w.id AND v.seq BETWEEN w.first AND w.last
        AND v.kind <> '{EventKind.CONTENT}'
    ORDER BY e.id, v.seq
"""


class Broadcaster:
    """The thread that tells; after a failure it drops what comes for a few seconds.

    After a while without work, it lets its connections go and ends.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: Numbers = {}
        self._telling = False
        self._closed = False
        self._is_full = False
        self._thread: threading.Thread | None = None
        self._silent_until = 0.0

    def put(self, execution_id: str, first: int, last: int) -> None:
        """Take events to tell of; one execution too many is dropped, for whom sockets look at the table."""
        if self._closed or time.monotonic() < self._silent_until:
            return
        with self._changed:
            known = self._waiting.get(execution_id)
            if known is not None:
                first, last = min(first, known[0]), max(last, known[1])
            elif len(self._waiting) >= CAPACITY:
                self._say_full()
                return
            self._waiting[execution_id] = (first, last)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="agency-broadcast", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, timeout: float) -> bool:
        """Whether everything taken so far was told, or dropped, within `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._telling, timeout)

    def close(self, timeout: float = FAREWELL_SECONDS) -> None:
        """Tell what is left, as far as `timeout` seconds allow, and end the thread."""
        self.flush(timeout)
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(timeout)

    def _say_full(self) -> None:
        if not self._is_full:
            self._is_full = True
            log.warning("sockets are not told of everything: %d executions wait to be told of", CAPACITY)

    def _run(self) -> None:
        with asyncio.Runner() as runner, contextlib.closing(connections[database()]):
            while taken := self._next():
                begun = time.monotonic()
                try:
                    self._tell(runner, taken)
                finally:
                    if not self._waiting:
                        # A pool may want it back, and a database that nobody uses may be dropped.
                        connections[database()].close()
                    with self._changed:
                        self._telling = False
                        self._changed.notify_all()
                time.sleep(max(0.0, begun + ROUND_SECONDS - time.monotonic()))

    def _next(self) -> Numbers:
        """What waits to be told; nothing when the thread may end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed, _IDLE_SECONDS)
            taken, self._waiting = self._waiting, {}
            self._is_full = False
            self._telling = bool(taken)
            if not taken:
                self._thread = None
            return taken

    def _tell(self, runner: asyncio.Runner, taken: Numbers) -> None:
        if time.monotonic() < self._silent_until:
            return
        try:
            wanted = sorted(taken.items())
            for start in range(0, len(wanted), READ_AT_ONCE):
                runner.run(_send(read(dict(wanted[start : start + READ_AT_ONCE]))))
        except Exception as exc:
            # Whatever database or transport raise: what was written stands, and that is what counts.
            connections[database()].close()
            self._silent_until = time.monotonic() + PAUSE_AFTER_FAILURE
            why = str(exc) or type(exc).__name__
            log.warning("sockets are told nothing for %g s: %s", PAUSE_AFTER_FAILURE, why)


def read(numbers: Numbers) -> list[tuple[str, Notice]]:
    """The notices of these events, each with a group that gets it, in the order of each execution."""
    told: list[tuple[str, Notice]] = []
    for (key, mission, owner), group in groupby(_rows(numbers), itemgetter(0, 1, 2)):
        execution = _uuid(key)
        events = [_lifecycle(*row[3:]) for row in group if row[3] is not None]
        whose = Whose(execution, None if mission is None else _uuid(mission))
        made = notices.notices(whose, *numbers[execution], events)
        told += [(notices.execution_group(execution), one) for one in made]
        if mission is not None:
            to = notices.missions_group(owner)
            told += [(to, one) for one in made if one["type"] != notices.CONTENT]
    return told


def _rows(numbers: Numbers) -> list[tuple[Any, ...]]:
    """Each execution with its lifecycle events among these numbers, or once without any.

    The ORM takes longer to write this query than the database to answer it, ten times a second.
    """
    if not numbers:
        return []
    connection = connections[database()]
    row = _WANTED[connection.vendor]
    wanted = ", ".join([row] * len(numbers))
    values = [(uuid_value(connection, key), *numbers[key]) for key in numbers]
    with connection.cursor() as cursor:
        cursor.execute(_LIFECYCLE.format(wanted=wanted), [value for each in values for value in each])
        return cursor.fetchall()


def _uuid(value: Any) -> str:
    """As notices name it; SQLite keeps it without hyphens."""
    return str(uuid.UUID(str(value)))


def _lifecycle(seq: int, kind: str, iteration: int, moment: Any, data: Any) -> Lifecycle:
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    if moment.tzinfo is None:  # SQLite keeps UTC without saying so
        moment = moment.replace(tzinfo=UTC)
    return Lifecycle(seq, kind, iteration, moment, json.loads(data) if isinstance(data, str) else data)


async def _send(told: list[tuple[str, Notice]]) -> None:
    # Channels loads slowly, and most processes never tell anything.
    from channels.layers import get_channel_layer

    layer: Any = get_channel_layer()
    by_group: dict[str, list[Notice]] = {}
    for group, one in told:
        by_group.setdefault(group, []).append(one)
    for group, ones in by_group.items():
        for start in range(0, len(ones), SENT_AT_ONCE):
            async with asyncio.timeout(SEND_SECONDS):
                some = ones[start : start + SENT_AT_ONCE]
                await layer.group_send(group, {"type": HANDLER, "notices": some})


_broadcasters: dict[int, Broadcaster] = {}
_lock = threading.Lock()


def broadcaster() -> Broadcaster:
    """This process's broadcaster."""
    with _lock:
        pid = os.getpid()
        if pid not in _broadcasters:
            _broadcasters.clear()
            _broadcasters[pid] = Broadcaster()
            atexit.register(_farewell, pid)
        return _broadcasters[pid]


def _farewell(pid: int) -> None:
    """Not in a forked child: the thread is its parent's."""
    if os.getpid() == pid:
        _broadcasters[pid].close()


def connect() -> None:
    """Tell sockets of what is written, if the project has a channel layer. Called when Django is ready."""
    checks.register(check, "agency")
    if _layer():
        events_written.connect(_on_written, dispatch_uid="agency.runtime.broadcast")


def _on_written(sender: Any, execution_id: str, first: int, last: int, **_: Any) -> None:
    broadcaster().put(execution_id, first, last)


def _layer() -> dict[str, Any]:
    return getattr(settings, "CHANNEL_LAYERS", {}).get("default") or {}


def check(**_: Any) -> list[checks.CheckMessage]:
    """Django's system check of the channel layer."""
    backend = _layer().get("BACKEND")
    if backend not in _UNFIT:
        return []
    said = f"the channel layer {backend} {_UNFIT[backend]}"
    return [checks.Warning(said, hint=f"Set its BACKEND to {_PUBSUB}.", id="agency.W023")]

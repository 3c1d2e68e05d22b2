"""`/ws/missions/`: what becomes of the executions of the caller's missions, from now on."""

import time
from collections import deque
from collections.abc import Collection
from typing import Any

from django.db.models import Max, Q

from agency.mission.notices import Notice, missions_group
from agency.models import Event, Execution
from agency.models.clock import Now
from agency.models.event import with_event_seq
from agency.runtime import broadcast
from agency.ws.socket import NOBODY, Closing, Socket, reading

MOMENT = 60.0
"""For so many seconds after its end an execution is looked at, in case its last notice was lost."""
WHOLE_SECONDS = 60.0
"""Between two looks at all of a person's executions; those between look at what is new in the log."""
OVERLAP = 10.0
"""For how many seconds an event may be committed after one that was numbered later, and is found at once."""

Known = dict[str, int]
"""The last event of each execution that was told of."""


async def follow(socket: Socket) -> Closing:
    """Each message is a notice. The first, `{"type": "listening"}`, says that nothing later is missed."""
    user = await socket.user()
    async with socket.listening(missions_group(user.pk)):
        told: Told = await reading(Told)(user)
        await socket.tell({"type": "listening"})
        while (user := await socket.user()) is not None:
            await socket.wait()
            heard, socket.heard = socket.heard, set()
            for notice in await reading(told.news)(user, heard):
                await socket.tell(notice)
    return NOBODY


class Told:
    """What a socket has told of, and how far the log was read at its last looks."""

    def __init__(self, user: Any) -> None:
        self._marks = deque([(time.monotonic(), newest())])
        self.known = stand(user)
        self._whole_at = time.monotonic()

    def news(self, user: Any, heard: Collection[str]) -> list[Notice]:
        """The notices since the last: of what was `heard` of, or else of all."""
        now, known = stand(user, heard) if heard else self._look(user), self.known
        gone_on = {key: (known.get(key, 0) + 1, seq) for key, seq in now.items() if seq > known.get(key, 0)}
        known.update(now)
        group = missions_group(user.pk)
        return [notice for to, notice in broadcast.read(gone_on) if to == group]

    def _look(self, user: Any) -> Known:
        """What has gone on: one statement where nothing has, however many executions are open."""
        now, last = time.monotonic(), newest()
        self._marks.append((now, last))
        while len(self._marks) > 1 and self._marks[1][0] <= now - OVERLAP:
            self._marks.popleft()
        if now - self._whole_at >= WHOLE_SECONDS:
            self._whole_at = now
            return stand(user)
        since = self._marks[0][1]
        return {} if last == since else gone_on_since(since, user)


def stand(user: Any, among: Collection[str] = ()) -> Known:
    """The executions that may have something to tell, each with its last event."""
    recent = Q(pk__in=among) if among else Q(finished_at=None) | Q(finished_at__gt=Now(-MOMENT))
    rows = Execution.objects.filter(recent, owner=user, mission__isnull=False)
    return {str(key): seq for key, seq in with_event_seq(rows).values_list("pk", "newest_seq")}


def gone_on_since(number: int, user: Any) -> Known:
    """The same of those that have events with a higher id."""
    rows = Event.objects.filter(pk__gt=number, execution__owner=user, execution__mission__isnull=False)
    found = rows.order_by().values_list("execution_id").annotate(newest=Max("seq"))
    return {str(key): seq for key, seq in found}


def newest() -> int:
    """The highest id in the log. Ids are given before the commit, so a lower one may still come."""
    return Event.objects.aggregate(newest=Max("pk"))["newest"] or 0

"""`/ws/missions/`: what becomes of the executions of the caller's missions, from now on."""

from collections.abc import Collection
from typing import Any

from django.db.models import Q

from agency.mission.notices import Notice, missions_group
from agency.models import Execution
from agency.models.clock import Now
from agency.models.event import with_event_seq
from agency.runtime import broadcast
from agency.ws.socket import NOBODY, Closing, Socket, reading

MOMENT = 60.0
"""For so many seconds after its end an execution is looked at, in case its last notice was lost."""

Known = dict[str, int]
"""The last event of each execution that was told of."""


async def follow(socket: Socket) -> Closing:
    """Each message is a notice. The first, `{"type": "listening"}`, says that nothing later is missed."""
    user = await socket.user()
    async with socket.listening(missions_group(user.pk)):
        known: Known = await reading(stand)(user)
        await socket.tell({"type": "listening"})
        while (user := await socket.user()) is not None:
            await socket.wait()
            heard, socket.heard = socket.heard, set()
            for notice in await reading(news)(user, known, heard):
                await socket.tell(notice)
    return NOBODY


def stand(user: Any, among: Collection[str] = ()) -> Known:
    """The executions that may have something to tell, each with its last event."""
    recent = Q(pk__in=among) if among else Q(finished_at=None) | Q(finished_at__gt=Now(-MOMENT))
    rows = Execution.objects.filter(recent, owner=user, mission__isnull=False)
    return {str(key): seq for key, seq in with_event_seq(rows).values_list("pk", "newest_seq")}


def news(user: Any, known: Known, heard: Collection[str]) -> list[Notice]:
    """The notices since `known`, which is brought up to date: of what was `heard` of, or else of all."""
    now = stand(user, heard)
    gone_on = {key: (known.get(key, 0) + 1, seq) for key, seq in now.items() if seq > known.get(key, 0)}
    known.update(now)
    group = missions_group(user.pk)
    return [notice for to, notice in broadcast.read(gone_on) if to == group]

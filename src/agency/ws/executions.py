"""`/ws/executions/<id>/?after=<seq>`: the log of an execution from there on, then what comes, to its end."""

import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from agency.api.schemas import EventOut
from agency.mission.notices import execution_group
from agency.models import Execution, visible_to
from agency.ws.socket import NOBODY, Closing, Socket, reading

AT_ONCE = 100
LARGEST_SEQ = 2**63 - 1
_NUMBER = re.compile(r"[0-9]{1,19}")
UNREADABLE = Closing(4400, "after is no number of an event: 0, or the seq of the last one that you have")
NOT_FOUND = Closing(4404, "there is no such execution, or you may not see it")
ENDED = Closing(1000, "the execution has ended")


@dataclass(frozen=True, slots=True)
class Seen:
    """The next events, each as JSON, up to number `last`; `is_over` if no more will come."""

    events: list[str]
    last: int
    is_over: bool


async def follow(socket: Socket) -> Closing:
    """Each message is `{"type": "event", "event": {…}}`, the event as the API shows it."""
    given = socket.request.GET.get("after", "0")
    if not _NUMBER.fullmatch(given) or int(given) > LARGEST_SEQ:
        return UNREADABLE
    execution_id: UUID = socket.named["execution_id"]
    async with socket.listening(execution_group(execution_id)):
        return await _told(socket, execution_id, int(given))


async def _told(socket: Socket, execution_id: UUID, after: int) -> Closing:
    while (user := await socket.user()) is not None:
        seen: Seen | None = await reading(look)(user, execution_id, after)
        if seen is None:
            return NOT_FOUND
        for event in seen.events:
            await socket.tell(f'{{"type":"event","event":{event}}}')
        after = seen.last
        if seen.is_over:
            return ENDED
        if len(seen.events) < AT_ONCE:
            await socket.wait()
    return NOBODY


def look(user: Any, execution_id: UUID, after: int) -> Seen | None:
    """What follows number `after`; `None` if there is no such execution for this user."""
    # The row first: what it says of the end holds for all events that are read after it.
    found = visible_to(user, Execution.objects.all()).filter(pk=execution_id)
    execution = found.only("status").first()
    if execution is None:
        return None
    rows = list(execution.events.filter(seq__gt=after).order_by("seq")[:AT_ONCE])
    last = rows[-1].seq if rows else after
    events = [EventOut.of(row).model_dump_json() for row in rows]
    return Seen(events, last, execution.is_terminal and last >= execution.event_seq)

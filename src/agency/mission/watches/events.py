"""Waits for a row in the event log of an execution."""

import uuid
from collections.abc import Iterator
from typing import Any, ClassVar

from agency.agent.text import cut
from agency.enums import EventKind
from agency.execution.claims import database
from agency.execution.declaration import Fault
from agency.execution.storable import as_json
from agency.mission.watches.declared import BaseWatch, Look, View
from agency.models import Event

SHOWN = 20
SHOWN_CHARACTERS = 2_000
_OWN_WAIT = {EventKind.ATTEMPT_COMPLETED, EventKind.ITERATION_COMPLETED, EventKind.LOOP_WAITING}
"""What the beginning of a wait itself writes."""


class EventWatch(BaseWatch):
    """Over when an execution's log has a new event of one of the `KINDS`.

    By default it is the waiting execution's own log; `EXECUTION` is the id of another one. Set `NAME`,
    `DESCRIPTION` and `KINDS`.
    """

    KINDS: ClassVar[tuple[EventKind, ...]]
    EXECUTION: ClassVar[str | uuid.UUID | None] = None

    @classmethod
    def faults(cls) -> Iterator[Fault]:
        words = {kind.value for kind in EventKind}
        kinds = getattr(cls, "KINDS", ())
        if not kinds or isinstance(kinds, str) or not words.issuperset(kinds):
            yield Fault("KINDS is no list of kinds of events", f"Name some of: {', '.join(sorted(words))}.")
        elif cls.EXECUTION is None and (own := sorted(_OWN_WAIT.intersection(kinds))):
            yield Fault(
                f"KINDS has {own[0]!r}, which the wait itself writes", "Leave it out, or set EXECUTION."
            )
        try:
            uuid.UUID(str(cls.EXECUTION or uuid.UUID(int=0)))
        except ValueError:
            yield Fault(f"EXECUTION {cls.EXECUTION!r} is no id", "Set it to None or an execution's id.")

    def begin(self, view: View) -> dict[str, Any]:
        rows = Event.objects.using(database()).filter(execution_id=self._watched(view))
        return {"seq": rows.order_by("-seq").values_list("seq", flat=True).first() or 0}

    def look(self, view: View, memory: dict[str, Any]) -> Look:
        rows = Event.objects.using(database()).filter(
            execution_id=self._watched(view), seq__gt=memory["seq"], kind__in=[*self.KINDS]
        )
        found = rows.order_by("seq").values("seq", "kind", "data")[:SHOWN]
        if not found:
            return Look(False)
        return Look(True, payload={"events": [_shown(row) for row in found]})

    def _watched(self, view: View) -> str:
        return str(self.EXECUTION or view.execution_id)


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    text = as_json(row["data"])
    return row if len(text) <= SHOWN_CHARACTERS else {**row, "data": cut(text, SHOWN_CHARACTERS)}

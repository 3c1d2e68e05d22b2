"""Where `agency watch` reads an execution: the rows of this project, or the API of a service elsewhere."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from agency.cli import project

if TYPE_CHECKING:
    from agency.models import Execution

PAGE = 1000
AWAY_FOR = 60.0
"""Seconds for which a service that has answered before may be away: it is started anew, or the network is."""
TRY_EVERY = 1.0


class Source(Protocol):
    """An execution as the API shows it, its events after a number, its iterations after another."""

    def execution(self, execution_id: str) -> dict[str, Any]: ...

    def events(self, execution_id: str, after: int) -> dict[str, Any]: ...

    def iterations(self, execution_id: str, after: int) -> dict[str, Any]: ...


class Rows:
    """The rows of this project's database, whoever runs them."""

    def execution(self, execution_id: str) -> dict[str, Any]:
        from agency.api.schemas import ExecutionOut

        return ExecutionOut.of(self._row(execution_id)).model_dump(mode="json")

    def events(self, execution_id: str, after: int) -> dict[str, Any]:
        from agency.api.schemas import EventOut

        rows = self._row(execution_id).events.filter(seq__gt=after).order_by("seq")[:PAGE]
        items = [EventOut.of(row).model_dump(mode="json") for row in rows]
        return {"items": items, "after": items[-1]["seq"] if items else after}

    def iterations(self, execution_id: str, after: int) -> dict[str, Any]:
        from agency.api.mission_schemas import IterationOut

        rows = self._row(execution_id).iterations.filter(n__gt=after).order_by("n")[:PAGE]
        items = [IterationOut.of(row).model_dump(mode="json") for row in rows]
        return {"items": items, "after": items[-1]["n"] if items else after}

    def _row(self, execution_id: str) -> "Execution":
        return project.find_execution(execution_id)


class Patient:
    """Another source, whose absence is waited out once it has answered."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._has_answered = False

    def execution(self, execution_id: str) -> dict[str, Any]:
        return self._had(lambda: self._source.execution(execution_id))

    def events(self, execution_id: str, after: int) -> dict[str, Any]:
        return self._had(lambda: self._source.events(execution_id, after))

    def iterations(self, execution_id: str, after: int) -> dict[str, Any]:
        return self._had(lambda: self._source.iterations(execution_id, after))

    def _had(self, read: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        from agency.cli.client import ServiceAway

        until = time.monotonic() + AWAY_FOR
        while True:
            try:
                answer = read()
            except ServiceAway:
                if not self._has_answered or time.monotonic() >= until:
                    raise
                time.sleep(TRY_EVERY)
            else:
                self._has_answered = True
                return answer

"""Where `agency watch` reads an execution: the rows of this project, or the API of a service elsewhere."""

from typing import TYPE_CHECKING, Any, Protocol

from agency.cli import project

if TYPE_CHECKING:
    from agency.models import Execution

PAGE = 1000


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

"""What an execution has spent in the iteration that is open: on record in its events, in no total yet."""

from agency.agent.events import Usage
from agency.enums import EventKind
from agency.execution.claims import database
from agency.models import Event, Execution


def open_usage(row: Execution) -> Usage:
    """The cost of what was recorded since the last committed iteration; for an end that commits none."""
    found = Event.objects.using(database()).filter(
        execution=row, iteration=row.iteration + 1, kind=EventKind.CONTENT.value
    )
    spent = found.order_by("seq").values_list("usage", flat=True)
    return sum((Usage.model_validate(one) for one in spent if one is not None), Usage())

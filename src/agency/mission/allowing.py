"""What people have allowed for all executions of a mission, and how they take it back."""

from django.db import transaction

from agency.execution import answering
from agency.execution.claims import database
from agency.models import Mission


def allowed(mission: Mission) -> list[str]:
    """The tools whose calls ask nobody in any execution of the mission."""
    rows = Mission.objects.using(database()).filter(pk=mission.pk)
    said: dict[str, bool] = rows.values_list("always_allow", flat=True).get()
    return sorted(tool for tool, holds in said.items() if holds)


def revoke(mission: Mission, tool: str) -> bool:
    """Have calls of `tool` ask again, at once and in all executions; `False` if they do already.

    What was allowed for one execution alone stays allowed there.
    """
    with transaction.atomic(using=database()):
        return tool in answering.allow_for_mission(mission.pk, {tool: False})

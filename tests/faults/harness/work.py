"""The orders of a run: a steady number of them open, so that a worker's death finds free places elsewhere."""

import functools
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import Error, InterfaceError, connection
from django.db.models import Sum

from agency.enums import TERMINAL_STATUSES
from agency.execution import service
from agency.models import ConfiguredAgent, Execution
from tests.faults.harness.app.executions import Rounds
from tests.faults.harness.spec import Spec

TRICKLE = 3
_TERMINAL = [status.value for status in TERMINAL_STATUSES]


def patient(default: Any) -> Any:
    """A look at a database that may be away: then the answer is what it was last time."""

    def decorate(look: Any) -> Any:
        @functools.wraps(look)
        def again(self: "Work", *args: Any) -> Any:
            try:
                self.known[look.__name__] = look(self, *args)
            except (Error, InterfaceError):
                connection.close()
            return self.known.get(look.__name__, default)

        return again

    return decorate


class Work:
    """Creates the tables and the agent, then hands out orders."""

    def __init__(self, spec: Spec) -> None:
        call_command("migrate", verbosity=0)
        owner = get_user_model().objects.create(username="harness")
        self._agent = ConfiguredAgent.objects.create(agent_key="harness-applier", owner=owner, name="Applier")
        self._spec = spec
        self._given = 0
        self._room = spec.room
        self.known: dict[str, Any] = {}

    @patient(None)
    def feed(self, slowly: bool) -> None:
        """Hand out as many orders as there is room for, or only what keeps a few workers busy."""
        if self._given >= self._spec.executions:
            return
        open_now = Execution.objects.exclude(status__in=_TERMINAL).count()
        count = min((TRICKLE if slowly else self._room) - open_now, self._spec.executions - self._given)
        if count > 0:
            orders = [{"number": self._given + n, "attempts": self._spec.attempts} for n in range(count)]
            service.submit_batch(Rounds, self._agent, orders)
            self._given += count

    @patient(0.0)
    def progress(self) -> float:
        """The share of the iterations that is committed."""
        return (Execution.objects.aggregate(done=Sum("iteration"))["done"] or 0) / self._spec.iterations

    @patient(False)
    def ended(self) -> bool:
        if self._given < self._spec.executions:
            return False
        return not Execution.objects.exclude(status__in=_TERMINAL).exists()

    @patient({})
    def held(self) -> dict[int, list[tuple[str, int]]]:
        """Ids and fences of what each process has claimed."""
        holding: dict[int, list[tuple[str, int]]] = {}
        rows = Execution.objects.filter(claim_id__isnull=False).values_list("claim_owner", "id", "fence")
        for owner, execution_id, fence in rows:
            holding.setdefault(int(owner.split("|")[1]), []).append((str(execution_id), fence))
        return holding

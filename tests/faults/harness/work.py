"""The orders of a run: a steady number of them open, so that a worker's death finds free places elsewhere."""

import functools
import random
import time
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import Error, InterfaceError, connection, transaction
from django.db.models import Sum

from agency.enums import TERMINAL_STATUSES, HumanDecision, HumanRequestKind, HumanRequestStatus
from agency.execution import answering, service
from agency.human.answers import ItemAnswer
from agency.models import ConfiguredAgent, Execution, HumanRequest, HumanRequestItem, Mission
from agency.runtime import queue
from tests.faults.harness.app.executions import Rounds
from tests.faults.harness.spec import Spec

TRICKLE = 3
SETTLE = 1.5
ANSWERED = 5
"""Requests that are answered in one look, so that the nemesis has its turns in between."""
MOODS = {3: "asks", 13: "blocks"}
"""Of the loops with these last digits, by twenties; they have odd numbers."""
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
    """Creates the tables and the agent, then hands out orders: those that hang first, and at once."""

    def __init__(self, spec: Spec) -> None:
        call_command("migrate", verbosity=0)
        self._owner = owner = get_user_model().objects.create(username="harness")
        self._agent = ConfiguredAgent.objects.create(agent_key="harness-applier", owner=owner, name="Applier")
        self._loops: set[str] = set()
        self._chance = random.Random(f"wake-ups/{spec.seed}")
        self._spec = spec
        self._given = 0
        self._hanging = self._submit(spec.hanging, "hang") if spec.hanging else []
        self._held_since: float | None = None
        self.known: dict[str, Any] = {}

    @patient([])
    def feed(self, slowly: bool) -> list[str]:
        """Hand out as many orders as there is room for, or only what keeps a few workers busy; their ids."""
        if self._given >= self._spec.executions:
            return []
        open_now = Execution.objects.exclude(status__in=_TERMINAL).count()
        room = TRICKLE if slowly else self._spec.room
        count = min(room - open_now, self._spec.executions - self._given)
        return self._submit(count, "well") if count > 0 else []

    @patient(0.0)
    def progress(self) -> float:
        """The share of the iterations that is committed."""
        done = Execution.objects.aggregate(done=Sum("iteration"))["done"] or 0
        return done / max(1, self._spec.iterations)

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

    def cancel_one(self) -> None:
        """Once all that hangs is held by workers and waits for its model, cancel one of it."""
        if not self._hanging:
            return
        if self._held_since is None and sum(map(len, self.held().values())) >= self._spec.hanging:
            self._held_since = time.monotonic()
        if self._held_since is not None and time.monotonic() > self._held_since + SETTLE:
            service.request_cancel(Execution.objects.get(pk=self._hanging.pop()))

    def wake(self, execution_id: str) -> None:
        """One more wake-up, as the runtime sends them; of a loop that of any of its iterations."""
        name, iteration = "agency.run_execution", 1
        if execution_id in self._loops:
            name, iteration = "agency.run_loop_iteration", self._chance.randint(1, self._spec.attempts)
        queue.celery_app().send_task(name, (execution_id, iteration), retry=False, ignore_result=True)

    @patient(0)
    def answer(self) -> int:
        """Be the person whom loops ask: agree to everything. How many requests were answered."""
        waiting = HumanRequest.objects.filter(status=HumanRequestStatus.OPEN.value)
        for request in waiting.order_by("created_at")[:ANSWERED]:
            given = [_agreed(item) for item in request.items.all()]
            answering.answer(request.pk, given, self._owner)
        return len(waiting)

    def _submit(self, count: int, mood: str) -> list[str]:
        taken = self._spec.executions if mood == "hang" else self._given
        numbers = range(taken, taken + count)
        loops = [] if mood == "hang" else [n for n in numbers if self.is_loop(n)]
        orders = [
            {"number": n, "attempts": self._spec.attempts, "mood": mood} for n in numbers if n not in loops
        ]
        with transaction.atomic():
            made = service.submit_batch(Rounds, self._agent, orders) if orders else []
            ids = [str(one.execution.pk) for one in made]
            begun = [str(self.loop(n).dispatch().pk) for n in loops]
        if mood != "hang":
            self._given += count
        self._loops.update(begun)
        return ids + begun

    def is_loop(self, number: int) -> bool:
        """Half of the orders are missions."""
        return bool(number % 2)

    def loop(self, number: int) -> Mission:
        """The mission of an order: one in ten asks a person, before a call or between two rounds."""
        return self.mission(number, MOODS.get(number % 20, "well"), "mission")

    def mission(self, number: int, mood: str, name: str) -> Mission:
        rounds = self._spec.attempts
        return Mission.objects.create(
            owner=self._owner,
            agent=self._agent,
            name=name,
            prompt=f"Order {number}, {mood}. It takes {rounds} rounds.",
            loop_prompt="Judge round {iteration} of it.",
            max_iterations=rounds,
        )


def _agreed(item: HumanRequestItem) -> ItemAnswer:
    if item.kind == HumanRequestKind.INPUT.value:
        return ItemAnswer(item.call_id, item.digest, HumanDecision.ANSWER, answer="Yes, go on.")
    return ItemAnswer(item.call_id, item.digest, HumanDecision.APPROVE)

"""Sixteen people who answer each request at once; now and then a cancel or the expiry is among them."""

import json
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

from django.db import connection

from agency.enums import HumanDecision, HumanRequestStatus
from agency.execution import answering, overdue, service
from agency.human.answers import ItemAnswer
from agency.models import HumanRequest, Mission
from agency.models.clock import Now
from tests.faults.harness.spec import Spec
from tests.faults.harness.work import Work

RACES = {8: "cancel", 9: "expiry"}
"""By the last digit of the order's number; all others are raced for by answers alone."""
SPREAD = 0.05
"""Seconds within which all act, where an expiry or a cancel is to come in between."""


class Crowd(Work):
    """Every order is a mission that asks after its first round."""

    def __init__(self, spec: Spec, log: Path) -> None:
        super().__init__(spec)
        self._crowd = spec.crowd
        self._log = log.open("a", buffering=1)
        self._people = random.Random(f"people/{spec.seed}")

    def is_loop(self, number: int) -> bool:
        return True

    def loop(self, number: int) -> Mission:
        return self.mission(number, "blocks", RACES.get(number % 10, "answers"))

    def answer(self) -> int:
        """Race for the requests that are open; how many there were."""
        waiting = list(
            HumanRequest.objects.filter(status=HumanRequestStatus.OPEN.value)
            .select_related("execution__mission")
            .order_by("created_at")[:1]
        )
        for request in waiting:
            self._race(request, request.execution.mission.name)
        return len(waiting)

    def _race(self, request: HumanRequest, race: str) -> None:
        item = request.items.get()
        won: list[str] = []
        acts: list[Callable[[], None]] = []
        for person in range(self._crowd - (race != "answers")):
            said = f"Answer {person} to {request.pk}"
            given = ItemAnswer(item.call_id, item.digest, HumanDecision.ANSWER, answer=said)

            def act(said: str = said, given: ItemAnswer = given) -> None:
                if answering.answer(request.pk, [given], self._owner).refused is None:
                    won.append(said)

            acts.append(act)
        if race == "cancel":
            acts.append(lambda: _cancel(request))
        elif race == "expiry":
            HumanRequest.objects.filter(pk=request.pk).update(expires_at=Now(SPREAD / 2))
            acts.append(lambda: _expire(request))
        self._people.shuffle(acts)
        _all_at_once(acts, 0.0 if race == "answers" else SPREAD, self._people)
        given = self._crowd - (race != "answers")
        line = {"execution": str(request.execution_id), "race": race, "given": given, "won": won}
        self._log.write(json.dumps(line) + "\n")


def _cancel(request: HumanRequest) -> None:
    service.request_cancel(request.execution)


def _expire(request: HumanRequest) -> None:
    """As the sweep does it, which comes by all the time: until the request is closed."""
    until = time.monotonic() + 5.0
    open_still = HumanRequest.objects.filter(pk=request.pk, status=HumanRequestStatus.OPEN.value)
    while open_still.exists() and time.monotonic() < until:
        overdue.expire(request.pk)


def _all_at_once(acts: list[Callable[[], None]], spread: float, chance: random.Random) -> None:
    """Each on a thread and connection of its own, from one starting line."""
    line = threading.Barrier(len(acts))
    failures: list[BaseException] = []

    def run(act: Callable[[], None], wait: float) -> None:
        try:
            connection.ensure_connection()
            line.wait()
            time.sleep(wait)
            act()
        except BaseException as exc:  # reported by the thread that waits for all
            failures.append(exc)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(act, chance.uniform(0, spread))) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]

"""Missions are changed and removed while others dispatch them: what happens is one or the other, whole."""

from threading import Barrier, Thread
from typing import Any

import pytest
from django.db import connections, transaction

from agency.errors import InvalidInput
from agency.mission import missions, service
from agency.models import ConfiguredAgent, Execution, Mission
from tests.integration.mission.scripted import mission

ROUNDS = 10


def at_once(*works: Any) -> None:
    """Run each on a thread of its own, begun together."""
    barrier = Barrier(len(works))

    def run(work: Any) -> None:
        try:
            barrier.wait()
            work()
        finally:
            connections.close_all()

    threads = [Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


@pytest.mark.django_db(transaction=True)
def test_a_dispatch_and_a_removal_at_once_leave_an_execution_with_its_mission_or_nothing(
    agent: ConfiguredAgent,
) -> None:
    for _ in range(ROUNDS):
        row = mission(agent)
        dispatched: list[bool] = []

        def dispatch(row: Mission = row, dispatched: list[bool] = dispatched) -> None:
            with transaction.atomic():
                held = missions.locked_to_dispatch(row)
                if held is not None:
                    service.dispatch(held)
            dispatched.append(held is not None)

        at_once(dispatch, lambda row=row: missions.remove(row))
        left = Mission.objects.filter(pk=row.pk).first()
        assert len(dispatched) == 1
        assert Execution.objects.filter(mission_id=row.pk).count() == dispatched[0]
        assert (left is not None and left.archived_at is not None) == dispatched[0]


@pytest.mark.django_db(transaction=True)
def test_changes_of_different_fields_at_once_both_count(agent: ConfiguredAgent) -> None:
    for n in range(ROUNDS):
        row = mission(agent)
        at_once(
            lambda row=row, n=n: missions.update(row, name=f"New {n}"),
            lambda row=row, n=n: missions.update(row, max_iterations=n + 1),
        )
        row.refresh_from_db()
        assert (row.name, row.max_iterations) == (f"New {n}", n + 1)


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["owner", "id", "archived_at", "is_loop", "always_allow"])
def test_what_people_do_not_set_is_refused(agent: ConfiguredAgent, name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name}: is no field of a mission that can be set"):
        missions.update(mission(agent), **{name: None})


@pytest.mark.django_db
def test_a_mission_that_was_stored_by_hand_is_checked_when_it_is_dispatched(agent: ConfiguredAgent) -> None:
    with pytest.raises(InvalidInput, match="limits.euros: unknown"):
        mission(agent, limits={"euros": 5}).dispatch()

"""People, the expiry and a cancel at the same moment: one of them wins, and the others are told."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from agency.enums import AlwaysFor, HumanDecision
from agency.execution import answering, overdue, service
from agency.execution.invariants import violations
from agency.human.answers import ItemAnswer
from agency.models import ConfiguredAgent, Execution, HumanRequest, Mission
from agency.models.clock import Now
from tests.integration.rows import an_ask, waiting_row

pytestmark = pytest.mark.django_db(transaction=True)
AtOnce = Callable[..., list[Any]]


@pytest.fixture
def agent(agency_agent: Callable[..., ConfiguredAgent]) -> ConfiguredAgent:
    return agency_agent("clerk")


def asked(agent: ConfiguredAgent, *tools: str, **columns: Any) -> HumanRequest:
    """The request of a new execution, whose log is as long as its row says."""
    execution = waiting_row(agent, an_ask(*tools), **columns)
    return execution.human_requests.get()


def saying(request: HumanRequest, decision: str, by: Any, place: int = 0, **more: Any) -> Callable[[], Any]:
    item = request.items.get(position=place)
    given = ItemAnswer(item.call_id, item.digest, HumanDecision(decision), **more)
    return lambda: answering.answer(request.pk, [given], by)


def test_of_two_answers_exactly_one_counts(agent: ConfiguredAgent, at_once: AtOnce) -> None:
    won: Counter[str] = Counter()
    for _ in range(200):
        request = asked(agent)
        both = at_once(saying(request, "approve", agent.owner), saying(request, "reject", agent.owner))
        winners = [one for one in both if one.refused is None]
        assert len(winners) == 1
        kept = request.items.get().decision
        assert {one.request.items.get().decision for one in both} == {kept}
        execution = Execution.objects.get(pk=request.execution_id)
        assert (execution.status, execution.event_seq) == ("in_progress", 1)
        won[kept] += 1
    assert won.total() == 200
    assert violations(cap=5) == []


def test_two_parts_of_an_answer_at_the_same_moment_make_the_execution_due_once(
    agent: ConfiguredAgent, at_once: AtOnce
) -> None:
    for _ in range(50):
        request = asked(agent, "pay", "mail")
        both = at_once(saying(request, "approve", agent.owner, 0), saying(request, "approve", agent.owner, 1))
        assert [one.refused for one in both] == [None, None]
        execution = Execution.objects.get(pk=request.execution_id)
        left = [row.data["undecided"] for row in execution.events.order_by("seq")]
        assert (execution.status, left) == ("in_progress", [1, 0])
    assert violations(cap=5) == []


def test_an_answer_and_a_cancel_leave_one_outcome(agent: ConfiguredAgent, at_once: AtOnce) -> None:
    for _ in range(50):
        request = asked(agent)
        execution = Execution.objects.get(pk=request.execution_id)
        answered, status = at_once(
            saying(request, "approve", agent.owner), lambda row=execution: service.request_cancel(row)
        )
        execution.refresh_from_db()
        request.refresh_from_db()
        assert (execution.status, status) == ("cancelled", "cancelled")
        assert request.status == ("answered" if answered.refused is None else "cancelled")
        assert (request.items.get().decision is None) == (answered.refused is not None)
    assert violations(cap=5) == []


def test_an_answer_and_the_expiry_leave_one_outcome(agent: ConfiguredAgent, at_once: AtOnce) -> None:
    for _ in range(50):
        request = asked(agent)
        # It runs out within the moment of the answer.
        HumanRequest.objects.filter(pk=request.pk).update(expires_at=Now(0.005))
        answered, expired = at_once(
            saying(request, "approve", agent.owner), lambda pk=request.pk: overdue.expire(pk)
        )
        if answered.refused is not None and not expired:
            assert overdue.expire(request.pk) is True
            expired = True
        assert (answered.refused is None) != expired
        request.refresh_from_db()
        assert request.status == ("expired" if expired else "answered")
        assert request.items.get().decision == ("reject" if expired else "approve")
    assert violations(cap=5) == []


def test_two_tools_allowed_for_a_mission_at_the_same_moment_are_both_allowed(
    agent: ConfiguredAgent, at_once: AtOnce
) -> None:
    for n in range(25):
        mission = Mission.objects.create(owner=agent.owner, agent=agent, name=f"Bills {n}", prompt="Pay.")
        both = [asked(agent, tool, execution_key=None, mission=mission) for tool in ("pay", "mail")]
        said = {"always": True, "always_for": AlwaysFor.MISSION}
        done = at_once(*(saying(request, "approve", agent.owner, **said) for request in both))
        assert [one.refused for one in done] == [None, None]
        mission.refresh_from_db()
        assert mission.always_allow == {"pay": True, "mail": True}
    assert violations(cap=5) == []

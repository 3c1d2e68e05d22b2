"""What sockets are told of missions: each event once, small, by the names that are promised."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agency.enums import HumanDecision
from agency.execution import answering
from agency.execution.signals import events_written
from agency.human.answers import ItemAnswer
from agency.mission import extending, signals, waiting
from agency.mission.notices import CONTENT, LARGEST, Notice, execution_group, missions_group
from agency.models import ConfiguredAgent, Execution
from agency.runtime import broadcast
from agency.testing import run_until_parked
from tests.integration.mission.scripted import Model, decision, go_on, kinds, mission

pytestmark = pytest.mark.django_db(transaction=True)
Told = Callable[[Execution], list[Notice]]


@pytest.fixture
def told() -> Iterator[Told]:
    """What was told so far to those who watch the execution; its owner was told the lifecycle of it."""
    sent: list[tuple[str, Notice]] = []

    def take(execution_id: str, first: int, last: int, **_: Any) -> None:
        sent.extend(broadcast.read({execution_id: (first, last)}))

    def of(execution: Execution) -> list[Notice]:
        all_of_it = [one for group, one in sent if group == execution_group(execution.pk)]
        lifecycle = [one for one in all_of_it if one["type"] != CONTENT]
        assert [one for group, one in sent if group == missions_group(execution.owner_id)] == lifecycle
        assert all(len(json.dumps(one)) <= LARGEST for one in all_of_it)
        execution.refresh_from_db()
        assert [one["type"] for one in lifecycle] == kinds(execution)
        seqs = [one["seq"] for one in all_of_it]
        assert seqs == sorted(set(seqs))
        assert seqs[-1] == execution.event_seq
        return all_of_it

    events_written.connect(take)
    yield of
    events_written.disconnect(take)


def test_a_loop_tells_of_its_rounds_its_question_the_answer_and_its_end(
    agent: ConfiguredAgent, model: Model, told: Told
) -> None:
    long = "Sorted B. " * 2_000
    model.answers = ["Sorted A.", long, "Sorted those of Bonn."]
    asked = decision("blocked", required_input={"question": "Which shop is meant?"})
    model.decisions = [go_on("Sort B."), asked, decision("complete", evidence="Sorted those of Bonn.")]
    execution = run_until_parked(mission(agent, loop_prompt="Go.").dispatch())
    assert told(execution)[-1]["type"] == "execution_interrupted"

    request = execution.human_requests.get(status="open")
    item = request.items.get()
    given = ItemAnswer(item.call_id, item.digest, HumanDecision.ANSWER, answer="The one in Bonn")
    answering.answer(request.pk, [given], agent.owner)
    run_until_parked(execution)

    heard = told(execution)
    completed = [one for one in heard if one["type"] == "mission_iteration_completed"]
    assert [one["iteration"] for one in completed] == [1, 2, 3]
    assert {one["mission"] for one in heard} == {str(execution.mission_id)}
    assert {"mission_loop_started", "mission_iteration_started", "mission_loop_blocked"} < {
        one["type"] for one in heard
    }
    assert [one["type"] for one in heard[-2:]] == ["mission_loop_completed", "execution_finished"]


def test_a_loop_tells_that_its_limit_is_reached(agent: ConfiguredAgent, model: Model, told: Told) -> None:
    model.answers, model.decisions = ["Sorted A."], [go_on("Sort B.")]
    execution = run_until_parked(mission(agent, loop_prompt="Go.", max_iterations=1).dispatch())
    assert [one["type"] for one in told(execution)[-2:]] == ["mission_loop_limit_reached", "execution_failed"]


def test_a_one_shot_mission_tells_of_no_loop(agent: ConfiguredAgent, model: Model, told: Told) -> None:
    model.answers = ["All orders are sorted."]
    heard = told(run_until_parked(mission(agent).dispatch()))
    assert [one["type"] for one in heard if one["type"].startswith("mission_")] == []
    assert heard[-1]["type"] == "execution_finished"


def test_a_wait_a_signal_and_a_grant_are_told(agent: ConfiguredAgent, model: Model, told: Told) -> None:
    model.answers = ["Ordered.", "Not there yet.", "It is there."]
    until_later = decision("wait", wait={"seconds": 5, "what_for": "the parcel"})
    model.decisions = [until_later, go_on("Look again."), decision("complete", evidence="It is there.")]
    execution = mission(agent, loop_prompt="Go.", max_iterations=2).dispatch()
    signals.send(execution, "parcel", {"secret": "payload"})
    execution = run_until_parked(execution)
    assert told(execution)[-1]["type"] == "mission_loop_waiting"
    waiting.run_now(execution, agent.owner)
    execution = run_until_parked(execution)
    assert told(execution)[-2]["type"] == "mission_loop_limit_reached"
    extending.extend(execution, 1, agent.owner)
    run_until_parked(execution)

    heard = told(execution)
    assert [one["type"] for one in heard].count("mission_loop_resumed") == 2
    received = next(one for one in heard if one["type"] == "mission_signal_received")
    assert received["name"] == "parcel"
    assert "payload" not in received
    assert heard[-1]["type"] == "execution_finished"

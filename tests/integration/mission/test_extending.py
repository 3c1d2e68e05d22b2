"""A mission that has reached its limit goes on for as many iterations as it is granted, once a wish."""

from collections.abc import Callable
from typing import Any

import pytest

from agency.errors import InvalidInput
from agency.execution.invariants import violations
from agency.execution.signals import execution_finished
from agency.mission import extending, signals
from agency.models import ConfiguredAgent, Execution
from agency.models.clock import Now, database_now
from agency.testing import run_until_parked
from tests.integration.mission.scripted import Model, decision, go_on, kinds, mission

pytestmark = pytest.mark.django_db
DONE = decision("complete", evidence="It is done.")


def at_the_limit(agent: ConfiguredAgent, model: Model, **fields: Any) -> Execution:
    model.answers, model.decisions = ["A.", "B."], [go_on("Sort B."), go_on("Sort C.")]
    execution = run_until_parked(mission(agent, loop_prompt="Go.", max_iterations=2, **fields).dispatch())
    assert execution.loop_status == "limit_reached"
    return execution


def test_it_goes_on_with_what_the_supervisor_wanted_next(agent: ConfiguredAgent, model: Model) -> None:
    execution = at_the_limit(agent, model)
    extended = extending.extend(execution, 3, agent.owner)
    assert extended.refused is None
    row = extended.execution
    assert (row.status, row.loop_status, row.generation, row.max_iterations) == (
        "in_progress",
        "running",
        2,
        5,
    )
    assert (row.failure_code, row.failure_summary, row.finished_at, row.announce_at) == (None,) * 4
    assert (row.claim_count, row.claim_id, row.next_run_at is None) == (0, None, False)
    event = row.events.order_by("seq").last()
    assert (event.kind, event.generation) == ("mission_loop_resumed", 2)
    assert event.data == {
        "by": "extension",
        "who": agent.owner.get_username(),
        "iterations": 3,
        "max_iterations": 5,
    }
    assert violations(5) == []
    model.answers, model.decisions = ["C."], [DONE]
    execution = run_until_parked(execution)
    assert (execution.status, execution.loop_status, execution.iteration) == ("finished", "completed", 3)
    message = execution.thread.messages.get(iteration=3, role="user")
    assert (message.said_by, message.content) == ("supervisor", "Sort C.")
    assert "3 of at most 5, 2 left" in model.judged[-1].contents[0].content
    assert [kinds(execution).count(kind) for kind in ("execution_failed", "execution_finished")] == [1, 1]
    assert violations(5) == []


def test_it_can_be_extended_again_and_past_a_hundred(agent: ConfiguredAgent, model: Model) -> None:
    execution = at_the_limit(agent, model)
    model.answers, model.decisions = ["C."], [go_on("Sort D.")]
    assert extending.extend(execution, 1, agent.owner).refused is None
    execution = run_until_parked(execution)
    assert (execution.loop_status, execution.generation) == ("limit_reached", 2)
    assert extending.extend(execution, 100, agent.owner).execution.max_iterations == 103
    assert violations(5) == []


def test_where_a_wait_ended_at_the_limit_its_end_opens_the_next_iteration(
    agent: ConfiguredAgent, model: Model
) -> None:
    model.answers, model.decisions = ["I wait."], [decision("wait", wait={"signal": "stock"})]
    execution = run_until_parked(mission(agent, loop_prompt="Go.", max_iterations=1).dispatch())
    signals.send(execution, "stock", "ten boxes")
    execution = run_until_parked(execution)
    assert execution.loop_status == "limit_reached"
    assert extending.extend(execution, 1, agent.owner).refused is None
    model.answers, model.decisions = ["Done."], [DONE]
    execution = run_until_parked(execution)
    message = execution.thread.messages.get(iteration=2, role="user")
    assert message.said_by == "signal" and "ten boxes" in message.content
    assert kinds(execution)[-5:] == [
        *("mission_loop_resumed", "mission_iteration_started", "mission_iteration_completed"),
        *("mission_loop_completed", "execution_finished"),
    ]
    assert kinds(execution).count("mission_iteration_started") == 2


def test_where_nobody_has_said_what_comes_next_the_agent_is_told_of_the_extension(
    agent: ConfiguredAgent, model: Model
) -> None:
    execution = at_the_limit(agent, model)
    execution.iterations.filter(n=2).update(feedback=None)
    extending.extend(execution, 4, agent.owner)
    model.answers, model.decisions = ["C."], [DONE]
    execution = run_until_parked(execution)
    message = execution.thread.messages.get(iteration=3, role="user")
    assert message.said_by == "extension" and "up to 4 more rounds" in message.content


def test_a_wish_is_granted_once(agent: ConfiguredAgent, model: Model) -> None:
    execution = at_the_limit(agent, model)
    assert extending.extend(execution, 2, agent.owner, generation=1).refused is None
    again = extending.extend(execution, 2, agent.owner, generation=1)
    assert "was extended before; it is in its generation 2" in str(again.refused)
    assert (again.execution.max_iterations, again.execution.generation) == (4, 2)
    assert "is running; only one that has reached" in str(extending.extend(execution, 2, agent.owner).refused)


def test_other_ends_stay_ends(agent: ConfiguredAgent, model: Model) -> None:
    model.answers, model.decisions = ["Done."], [DONE]
    finished = run_until_parked(mission(agent, loop_prompt="Go.").dispatch())
    assert "is completed" in str(extending.extend(finished, 1, agent.owner).refused)
    model.answers, model.decisions = ["No."], [decision("failed")]
    failed = run_until_parked(mission(agent, loop_prompt="Go.").dispatch())
    assert "is failed" in str(extending.extend(failed, 1, agent.owner).refused)
    model.answers = ["Done."]
    one_shot = run_until_parked(mission(agent).dispatch())
    assert "is finished" in str(extending.extend(one_shot, 1, agent.owner).refused)


@pytest.mark.parametrize("more", [0, -1, 101, True, 1.5, "3", None])
def test_what_is_no_number_of_iterations_is_refused(agent: ConfiguredAgent, model: Model, more: Any) -> None:
    execution = at_the_limit(agent, model)
    with pytest.raises(InvalidInput, match="iterations: must be a whole number from 1 to 100"):
        extending.extend(execution, more, agent.owner)
    assert Execution.objects.get(pk=execution.pk).generation == 1


def test_the_time_that_it_lay_counts_towards_no_deadline(agent: ConfiguredAgent, model: Model) -> None:
    execution = at_the_limit(agent, model, limits={"seconds": 600})
    before = (execution.deadline_at - database_now()).total_seconds()
    Execution.objects.filter(pk=execution.pk).update(finished_at=Now(-3_600), deadline_at=Now(before - 3_600))
    row = extending.extend(execution, 1, agent.owner).execution
    assert (row.deadline_at - database_now()).total_seconds() == pytest.approx(before, abs=30)


def test_listeners_are_told_of_each_end(
    agent: ConfiguredAgent, model: Model, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    told: list[int] = []

    def listen(sender: Any, execution: Execution, **_: Any) -> None:
        told.append(execution.generation)

    execution_finished.connect(listen)
    try:
        with django_capture_on_commit_callbacks(execute=True):
            execution = at_the_limit(agent, model)
        assert told == [1]
        extending.extend(execution, 1, agent.owner)
        model.answers, model.decisions = ["C."], [DONE]
        with django_capture_on_commit_callbacks(execute=True):
            run_until_parked(execution)
    finally:
        execution_finished.disconnect(listen)
    assert told == [1, 2]
    execution.refresh_from_db()
    assert execution.announce_at is None

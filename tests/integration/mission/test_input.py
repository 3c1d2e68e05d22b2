"""A loop that is blocked asks a person, and the answer opens its next iteration."""

from typing import Any

import pytest

from agency.errors import InvalidInput
from agency.execution.invariants import violations
from agency.models import ConfiguredAgent, Execution
from agency.models.clock import Now
from agency.runtime import sweep
from agency.testing import run_until_parked
from tests.integration.mission.people import (
    Model,
    answer,
    blocked,
    cashier,
    complete,
    go_on,
    kinds,
    loop,
    model,
    open_request,
    state,
)

__all__ = ["cashier", "model"]
pytestmark = pytest.mark.django_db


def ask(agent: ConfiguredAgent, model: Model, question: str = "Which shop?", **more: Any) -> Execution:
    """A loop that was run until its first iteration asks."""
    model.answers, model.decisions = ["Which shop is meant?", "Paid."], [blocked(question, **more)]
    execution = run_until_parked(loop(agent).dispatch())
    assert state(execution) == ("interrupted", "blocked", 1)
    return execution


def opening(execution: Execution, iteration: int) -> str:
    return execution.thread.messages.get(iteration=iteration, role="user").content


@pytest.mark.parametrize(
    ("required", "given", "heard", "refused"),
    [
        ({}, "The one in Bonn", "The one in Bonn", [" ", 5, ["Bonn"]]),
        ({"kind": "choice", "choices": ["Bonn", "Ulm"]}, "Ulm", "Ulm", ["Jena", True]),
        ({"kind": "confirmation"}, True, "yes", ["true", 1]),
        ({"kind": "confirmation"}, False, "no", ["no", 0]),
    ],
)
def test_each_kind_of_question_takes_answers_of_its_kind_only(
    cashier: ConfiguredAgent,
    model: Model,
    required: dict[str, Any],
    given: Any,
    heard: str,
    refused: list[Any],
) -> None:
    execution = ask(cashier, model, **required)
    for wrong in refused:
        with pytest.raises(InvalidInput) as caught:
            answer(execution, "answer", answer=wrong)
        assert caught.value.errors[0]["path"] == "items[0].answer"
    with pytest.raises(InvalidInput, match=r"items\[0\]\.answer: is missing"):
        answer(execution, "answer")
    model.decisions = [complete("Paid.")]
    assert answer(execution, "answer", answer=given).refused is None
    done = run_until_parked(execution)
    assert state(done) == ("finished", "completed", 2)
    assert opening(done, 2) == f"You needed: Which shop?\nA person answers: {heard}"
    assert violations(5) == []


def test_a_long_question_is_heard_whole_beside_its_answer(cashier: ConfiguredAgent, model: Model) -> None:
    question = "Which? " * 200
    execution = ask(cashier, model, question)
    assert len(open_request(execution).message) < 600
    model.decisions = [complete("Paid.")]
    answer(execution, "answer", answer="That one")
    assert question.strip() in opening(run_until_parked(execution), 2)


class TestOnTheLastIteration:
    @pytest.fixture
    def last(self, cashier: ConfiguredAgent, model: Model) -> Execution:
        model.answers, model.decisions = ["Paid A.", "Which shop?"], [go_on("Pay B."), blocked("Which shop?")]
        execution = run_until_parked(loop(cashier, max_iterations=2).dispatch())
        assert state(execution) == ("interrupted", "blocked", 2)
        assert open_request(execution).items.get().proposed["needs_grant"] is True
        return execution

    @pytest.mark.parametrize(
        ("more", "told"),
        [({}, "is missing"), ({"grant": 0}, "from 1 to 100"), ({"grant": 101}, "from 1 to 100")],
    )
    def test_an_answer_without_a_fitting_grant_is_refused_and_changes_nothing(
        self, last: Execution, more: dict[str, Any], told: str
    ) -> None:
        with pytest.raises(InvalidInput, match=told) as caught:
            answer(last, "answer", answer="Bonn", **more)
        assert [error["path"] for error in caught.value.errors] == ["items[0].grant"]
        assert open_request(last).items.get().decision is None
        assert violations(5) == []

    def test_the_granted_iterations_can_be_run_and_no_more(self, last: Execution, model: Model) -> None:
        model.answers = ["Paid B.", "Paid C."]
        model.decisions = [go_on("Pay C."), go_on("Pay D.")]
        assert answer(last, "answer", answer="Bonn", grant=2).refused is None
        last.refresh_from_db()
        assert (last.max_iterations, last.mission.max_iterations) == (4, 2)
        resumed = last.events.get(kind="mission_loop_resumed").data
        assert (resumed["granted"], resumed["max_iterations"], resumed["by"]) == (2, 4, "person")
        item = last.human_requests.get().items.get()
        assert (item.answer, item.effective) == ("Bonn", {"grant": 2})
        done = run_until_parked(last)
        assert state(done) == ("failed", "limit_reached", 4)
        assert "3 of at most 4, 1 left" in model.judged[2].contents[0].content
        assert violations(5) == []

    def test_giving_up_needs_no_grant(self, last: Execution) -> None:
        assert answer(last, "give_up").refused is None
        last.refresh_from_db()
        assert (last.status, last.failure_code) == ("failed", "mission_failed")
        assert violations(5) == []


def test_a_grant_that_nobody_asked_for_is_refused(cashier: ConfiguredAgent, model: Model) -> None:
    execution = ask(cashier, model)
    with pytest.raises(InvalidInput, match=r"items\[0\]\.grant: is not asked for here"):
        answer(execution, "answer", answer="Bonn", grant=3)
    with pytest.raises(InvalidInput, match=r"items\[0\]\.grant: goes with `answer` only"):
        answer(execution, "give_up", grant=3)


class TestGivenUp:
    def test_a_blocked_mission_has_failed(self, cashier: ConfiguredAgent, model: Model) -> None:
        execution = ask(cashier, model)
        assert answer(execution, "give_up").refused is None
        execution.refresh_from_db()
        assert state(execution) == ("failed", "failed", 1)
        assert execution.failure_code == "mission_failed"
        assert execution.failure_summary == "A person gave the execution up. Which shop?"
        assert kinds(execution)[-3:] == ["human_request_answered", "mission_loop_failed", "execution_failed"]
        assert violations(5) == []

    def test_one_that_made_no_progress_says_so(self, cashier: ConfiguredAgent, model: Model) -> None:
        model.answers, model.decisions = ["A.", "B.", "C."], [go_on("Pay the rest.")] * 3
        execution = run_until_parked(loop(cashier).dispatch())
        assert open_request(execution).items.get().proposed["because"] == "no_progress"
        answer(execution, "give_up")
        execution.refresh_from_db()
        assert (execution.status, execution.failure_code) == ("failed", "no_progress")
        assert execution.loop_status == "failed"


def test_what_a_person_says_ends_the_lack_of_progress(cashier: ConfiguredAgent, model: Model) -> None:
    model.answers, model.decisions = ["A.", "B.", "C."], [go_on("Pay the rest.")] * 3
    execution = run_until_parked(loop(cashier).dispatch())
    model.answers, model.decisions = ["D.", "E.", "F."], [go_on("Pay the rest.")] * 3
    answer(execution, "answer", answer="Go on all the same")
    execution = run_until_parked(execution)
    assert state(execution) == ("interrupted", "blocked", 6)
    assert "the same instruction was given 3 times" in open_request(execution).message


def test_a_question_that_nobody_answers_ends_the_loop(cashier: ConfiguredAgent, model: Model) -> None:
    execution = ask(cashier, model)
    execution.human_requests.update(expires_at=Now(-1))
    sweep.close()
    execution.refresh_from_db()
    assert state(execution) == ("failed", "failed", 1)
    assert (execution.failure_code, execution.generation) == ("request_expired", 1)
    assert kinds(execution)[-3:] == ["human_request_expired", "mission_loop_failed", "execution_failed"]
    assert execution.human_requests.get().status == "expired"
    assert violations(5) == []

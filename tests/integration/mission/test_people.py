"""Missions that ask people before calls: asked once, answered in parts, gone on elsewhere and later."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from agency.agent import ToolCall
from agency.errors import InvalidInput
from agency.execution import answering, overdue, registry
from agency.execution.invariants import violations
from agency.models import ConfiguredAgent, Execution, Mission, clock
from agency.models.clock import Now
from agency.runtime import sweep
from agency.runtime.body import Outcome, run_claimed
from agency.runtime.claim import claim
from agency.testing import run_until_parked
from tests.integration.mission.people import (
    Cashier,
    Model,
    answer,
    cashier,
    complete,
    decision,
    go_on,
    kinds,
    loop,
    made,
    mission,
    model,
    open_request,
    paying,
    results,
    say,
    state,
)

__all__ = ["cashier", "model"]
DAY = 86_400.0
pytestmark = pytest.mark.django_db


def asking(question: str, call_id: str = "ask-1", **more: Any) -> ToolCall:
    return ToolCall(tool_call_id=call_id, name="ask_human", arguments={"question": question, **more})


@pytest.fixture
def paused(cashier: ConfiguredAgent, model: Model) -> Execution:
    """The second iteration of a loop, which waits for a confirmation."""
    model.answers = ["There is one bill.", paying(5)]
    model.decisions = [go_on("Pay the bill.")]
    execution = run_until_parked(loop(cashier).dispatch())
    assert state(execution) == ("interrupted", "running", 1)
    return execution


def finish(execution: Execution, model: Model, evidence: str = "paid 5 to Ada") -> Execution:
    model.answers, model.decisions = ["Paid."], [complete(evidence)]
    return run_until_parked(execution)


def test_a_request_says_what_is_wanted_and_what_may_be_answered(paused: Execution) -> None:
    request = open_request(paused)
    assert (request.kind, request.iteration) == ("confirm_tool", 2)
    assert request.message == "Cashier wants to call pay(amount=5)."
    assert abs(request.expires_at - request.created_at - timedelta(days=7)) < timedelta(seconds=1)
    item = request.items.get()
    assert (item.tool, item.proposed, item.decision) == ("pay", {"amount": 5}, None)
    assert item.answer_schema["properties"]["amount"]["type"] == "integer"
    assert paused.human_requests.filter(status="open").count() == 1
    assert (paused.next_run_at, paused.claim_id, made) == (None, None, [])


def test_the_same_iteration_goes_on_after_an_approval(paused: Execution, model: Model) -> None:
    assert answer(paused, "approve").refused is None
    done = finish(paused, model)
    assert state(done) == ("finished", "completed", 2)
    assert (made, len(model.asked)) == (["5 to Ada"], 3)
    assert [row.n for row in done.iterations.order_by("n")] == [1, 2]
    assert done.thread.messages.filter(role="user").count() == 2
    assert "mission_loop_blocked" not in kinds(done)
    assert violations(5) == []


def test_edited_arguments_are_checked_anew_and_all_three_records_are_kept(
    paused: Execution, model: Model, django_user_model: Any
) -> None:
    boss = django_user_model.objects.create_user("boss")
    request = open_request(paused)
    with pytest.raises(InvalidInput, match=r"items\[0\]\.arguments\.amount: 'all' is not of type 'integer'"):
        answering.answer(request.pk, [say(request, "approve", arguments={"amount": "all"})], boss)
    edited = say(request, "approve", arguments={"amount": 3, "to": "Bob"})
    assert answering.answer(request.pk, [edited], boss).refused is None
    item = request.items.get()
    assert (item.proposed, item.decision, item.effective) == (
        {"amount": 5},
        "approve",
        {"amount": 3, "to": "Bob"},
    )
    assert item.decided_by == boss
    finish(paused, model, "paid 3 to Bob")
    assert made == ["3 to Bob"]


def test_the_reason_of_a_rejection_reaches_the_model(paused: Execution, model: Model) -> None:
    answer(paused, "reject", reason="too dear")
    model.answers, model.decisions = ["It was refused."], [decision("failed")]
    done = run_until_parked(paused)
    assert results(done) == [("error", "A person rejected this call: too dear")]
    assert "too dear" in str(model.asked[-1].contents)
    assert (made, done.failure_code) == ([], "mission_failed")


def test_several_calls_are_one_request_that_is_answered_in_parts(
    cashier: ConfiguredAgent, model: Model
) -> None:
    model.answers = [[paying(1), asking("Why?"), paying(2)]]
    execution = run_until_parked(mission(cashier).dispatch())
    request = open_request(execution)
    items = list(request.items.order_by("position"))
    assert [item.kind for item in items] == ["confirm_tool", "question", "confirm_tool"]
    assert len({item.digest for item in items}) == 3
    for place, word, more in ((2, "reject", {}), (0, "approve", {"arguments": {"amount": 4}})):
        assert answer(execution, word, place, **more).refused is None
        execution.refresh_from_db()
        assert state(execution) == ("interrupted", None, 0)
    answer(execution, "answer", 1, answer="because")
    model.answers = ["Paid."]
    done = run_until_parked(execution)
    assert done.status == "finished"
    assert [content for _, content in results(done)] == [
        "paid 4 to Ada",
        "because",
        "A person rejected this call.",
    ]
    assert made == ["4 to Ada"]
    assert violations(5) == []


def test_a_question_of_the_agent_takes_only_one_of_its_choices(
    cashier: ConfiguredAgent, model: Model
) -> None:
    model.answers = [asking("Which?", choices=["red", "blue"])]
    execution = run_until_parked(mission(cashier).dispatch())
    assert (open_request(execution).kind, open_request(execution).message) == ("question", "Which?")
    with pytest.raises(InvalidInput, match=r"items\[0\]\.answer: 'green' is not one of"):
        answer(execution, "answer", answer="green")
    answer(execution, "answer", answer="blue")
    model.answers = ["Blue it is."]
    assert results(run_until_parked(execution)) == [("success", "blue")]


def test_the_first_answer_wins_and_the_second_gets_it(paused: Execution) -> None:
    request = open_request(paused)
    late = say(request, "approve")
    answer(paused, "reject", reason="no")
    second = answering.answer(request.pk, [late], paused.owner)
    assert second.refused == "The request is answered; this answer came too late."
    assert second.request.items.get().reason == "no"


def test_an_answer_to_another_call_than_was_shown_is_refused(paused: Execution, model: Model) -> None:
    shown = say(open_request(paused), "approve")
    answer(paused, "reject")
    model.answers, model.decisions = [paying(500, "pay-5-again")], []
    execution = run_until_parked(paused)
    request = open_request(execution)
    with pytest.raises(InvalidInput, match="is no call of this request"):
        answering.answer(request.pk, [shown], execution.owner)
    item = request.items.get()
    forged = type(shown)(item.call_id, shown.digest, shown.decision)
    assert "digest is not that of the call" in str(
        answering.answer(request.pk, [forged], execution.owner).refused
    )
    assert (made, request.items.get().decision) == ([], None)


class TestNobodyAnswers:
    def test_a_day_before_it_is_told_once(self, paused: Execution, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(clock, "offset_seconds", 6 * DAY - 60)
        sweep.close()
        assert open_request(paused).warned_at is None
        monkeypatch.setattr(clock, "offset_seconds", 6 * DAY + 60)
        sweep.close()
        sweep.close()
        assert overdue.warn(open_request(paused).pk) is False
        assert kinds(paused).count("human_request_expiring") == 1

    def test_a_confirmation_counts_as_rejected_and_the_model_is_told(
        self, paused: Execution, model: Model
    ) -> None:
        paused.human_requests.update(expires_at=Now(-1))
        sweep.close()
        model.answers, model.decisions = ["Nobody agreed."], [decision("failed")]
        done = run_until_parked(paused)
        why = "A person rejected this call: nobody answered in time, so it counts as rejected"
        assert results(done) == [("error", why)]
        assert why in str(model.asked[-1].contents)
        assert (state(done), made) == (("failed", "failed", 2), [])
        assert violations(5) == []

    def test_a_question_ends_the_mission(self, cashier: ConfiguredAgent, model: Model) -> None:
        model.answers = [asking("Which?")]
        execution = run_until_parked(loop(cashier).dispatch())
        execution.human_requests.update(expires_at=Now(-1))
        sweep.close()
        execution.refresh_from_db()
        assert state(execution) == ("failed", "failed", 0)
        assert execution.failure_code == "request_expired"
        assert kinds(execution)[-3:] == ["human_request_expired", "mission_loop_failed", "execution_failed"]
        assert violations(5) == []


def test_the_deadline_stands_still_while_a_person_is_asked(
    cashier: ConfiguredAgent, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.answers = [paying(5)]
    execution = run_until_parked(mission(cashier, limits={"seconds": 3600}).dispatch())
    before = execution.deadline_at
    monkeypatch.setattr(clock, "offset_seconds", DAY)
    sweep.close()
    answer(execution, "approve")
    execution.refresh_from_db()
    assert timedelta(0) <= execution.deadline_at - before - timedelta(days=1) < timedelta(minutes=1)
    model.answers = ["Paid."]
    assert run_until_parked(execution).status == "finished"


class TestElsewhereAndLater:
    def test_a_worker_without_the_agents_class_leaves_it_to_one_that_has_it(
        self, paused: Execution, model: Model
    ) -> None:
        answer(paused, "approve")
        with registry.isolated(empty=True):
            claimed = claim(paused.pk)
            assert claimed is not None
            assert run_claimed(claimed) is Outcome.HELD
        paused.refresh_from_db()
        assert (paused.status, paused.claim_count) == ("in_progress", 0)
        assert "cashier" in paused.metadata["held"]["reason"]
        registry.register(Cashier)
        done = finish(paused, model)
        assert (state(done), made) == (("finished", "completed", 2), ["5 to Ada"])
        assert "held" not in done.metadata
        assert violations(5) == []

    def test_it_goes_on_as_it_was_dispatched_although_the_mission_and_its_agent_were_changed(
        self, paused: Execution, model: Model, cashier: ConfiguredAgent
    ) -> None:
        Mission.objects.filter(pk=paused.mission_id).update(loop_prompt=None, prompt="Do nothing.")
        ConfiguredAgent.objects.filter(pk=cashier.pk).update(prompt_override="You never pay.")
        answer(paused, "approve")
        done = finish(paused, model)
        assert state(done) == ("finished", "completed", 2)
        assert "Pay all bills." in model.judged[-1].contents[0].content
        assert model.asked[-1].instructions == ["You pay bills."]

    def test_a_claim_that_dies_after_the_answer_pays_for_nothing_and_makes_no_call_twice(
        self, paused: Execution, model: Model, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answer(paused, "approve")
        model.answers = []
        claimed = claim(paused.pk)
        assert claimed is not None
        with pytest.raises(KeyboardInterrupt):
            _die_when_asked(model, lambda: run_claimed(claimed), monkeypatch)
        assert made == ["5 to Ada"]
        Execution.objects.filter(pk=paused.pk).update(lease_until=Now(-1))
        done = finish(paused, model)
        assert (state(done), made) == (("finished", "completed", 2), ["5 to Ada"])
        assert violations(5) == []


def _die_when_asked(model: Model, run: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run until the model is asked next; there the worker ends as by a signal."""

    def end(request: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(model, "generate", end)
        run()

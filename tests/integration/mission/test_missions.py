"""Missions from dispatch to their end: one-shot, loops, and what people and supervisors say."""

import pytest

from agency.agent import ToolCall
from agency.enums import HumanDecision
from agency.errors import ModelRefused, ModelUnavailable
from agency.execution import answering
from agency.execution.invariants import violations
from agency.human.answers import ItemAnswer
from agency.models import ConfiguredAgent
from agency.models.clock import database_now
from agency.runtime.body import Outcome, run_claimed
from agency.runtime.claim import claim
from agency.testing import run_until_parked
from tests.integration.mission.scripted import Model, decision, go_on, kinds, mission

pytestmark = pytest.mark.django_db


def test_a_one_shot_mission_takes_one_turn_and_is_judged_by_nobody(agent: ConfiguredAgent, model: Model):
    model.answers = ["All orders are sorted."]
    execution = run_until_parked(mission(agent).dispatch())
    assert (execution.status, execution.loop_status, execution.iteration) == ("finished", None, 1)
    assert execution.output == {"response": "All orders are sorted."}
    assert execution.result == {
        "messages": [
            {"role": "user", "content": "Sort all orders."},
            {"role": "assistant", "content": "All orders are sorted."},
        ],
        "output": "All orders are sorted.",
    }
    assert model.judged == []
    assert kinds(execution) == ["execution_started", "execution_attempt_completed", "execution_finished"]
    assert violations(5) == []


def test_a_loop_goes_on_by_the_supervisors_instructions_until_it_is_complete(
    agent: ConfiguredAgent, model: Model
):
    model.answers = ["Sorted A.", "Sorted B.", "Sorted C."]
    model.decisions = [
        go_on("Sort the orders of B."),
        go_on("Sort the orders of C."),
        decision("complete", evidence="Sorted C."),
    ]
    loop = mission(agent, loop_prompt="Round {iteration} of {max_iterations}.", max_iterations=5)
    execution = run_until_parked(loop.dispatch())
    assert (execution.status, execution.loop_status, execution.iteration) == ("finished", "completed", 3)
    assert execution.output == {"response": "Sorted C."}
    said = execution.thread.messages.order_by("seq").values_list("role", "said_by", "content", "iteration")
    assert list(said) == [
        ("user", "", "Sort all orders.", 1),
        ("assistant", "", "Sorted A.", 1),
        ("user", "supervisor", "Sort the orders of B.", 2),
        ("assistant", "", "Sorted B.", 2),
        ("user", "supervisor", "Sort the orders of C.", 3),
        ("assistant", "", "Sorted C.", 3),
    ]
    assert kinds(execution) == [
        *("execution_started", "mission_loop_started", "mission_iteration_started"),
        *("mission_iteration_completed", "mission_iteration_started") * 2,
        *("mission_iteration_completed", "mission_loop_completed", "execution_finished"),
    ]
    told = model.judged[1].contents[0].content
    for part in ("Sort all orders.", "2 of at most 5, 3 left", "Round 2 of 5.", "so far continue"):
        assert part in told
    assert "[round 2] supervisor: Sort the orders of B." in told
    assert [row.decision["status"] for row in execution.iterations.order_by("n")] == [
        "continue",
        "continue",
        "complete",
    ]
    assert violations(5) == []


def test_wanting_to_go_on_after_the_last_iteration_is_no_success(agent: ConfiguredAgent, model: Model):
    model.answers, model.decisions = ["Sorted A.", "Sorted B."], [go_on("Sort B."), go_on("Sort C.")]
    execution = run_until_parked(mission(agent, loop_prompt="Go.", max_iterations=2).dispatch())
    assert (execution.status, execution.loop_status) == ("failed", "limit_reached")
    assert execution.failure_code == "limit_reached"
    assert execution.failure_summary == "The mission used all of its 2 iterations and was not complete."
    assert kinds(execution)[-2:] == ["mission_loop_limit_reached", "execution_failed"]
    assert violations(5) == []


def test_completing_on_the_last_iteration_is_a_success(agent: ConfiguredAgent, model: Model):
    model.answers, model.decisions = ["Sorted."], [decision("complete", evidence="Sorted.")]
    execution = run_until_parked(mission(agent, loop_prompt="Go.", max_iterations=1).dispatch())
    assert (execution.status, execution.loop_status) == ("finished", "completed")


def test_a_supervisor_that_gives_up_fails_the_mission_with_its_reason(agent: ConfiguredAgent, model: Model):
    model.answers, model.decisions = ["There is no shop."], [decision("failed")]
    execution = run_until_parked(mission(agent, loop_prompt="Go.").dispatch())
    assert (execution.status, execution.loop_status) == ("failed", "failed")
    assert (execution.failure_code, execution.failure_summary) == ("mission_failed", "because failed")
    assert violations(5) == []


def test_two_answers_without_a_decision_fail_the_mission_and_keep_what_was_said(
    agent: ConfiguredAgent, model: Model
):
    model.answers, model.decisions = ["Sorted A."], ["I would go on.", go_on("n/a")]
    execution = run_until_parked(mission(agent, loop_prompt="Go.").dispatch())
    assert (execution.status, execution.failure_code) == ("failed", "supervisor_invalid")
    assert "n/a" in execution.loop_decision["raw"]
    assert "That cannot be used" in model.judged[1].contents[-1].content
    assert violations(5) == []


def test_a_blocked_loop_goes_on_with_a_persons_answer(agent: ConfiguredAgent, model: Model):
    model.answers = ["Which shop?", "Sorted those of Bonn."]
    asked = decision("blocked", required_input={"question": "Which shop is meant?"})
    model.decisions = [asked, decision("complete", evidence="Sorted those of Bonn.")]
    execution = run_until_parked(mission(agent, loop_prompt="Go.").dispatch())
    assert (execution.status, execution.loop_status, execution.iteration) == ("interrupted", "blocked", 1)
    request = execution.human_requests.get(status="open")
    assert (request.kind, request.message) == ("input", "Which shop is meant?")
    assert violations(5) == []
    item = request.items.get()
    given = ItemAnswer(item.call_id, item.digest, HumanDecision.ANSWER, answer="The one in Bonn")
    assert answering.answer(request.pk, [given], agent.owner).refused is None
    execution = run_until_parked(execution)
    assert (execution.status, execution.loop_status, execution.iteration) == ("finished", "completed", 2)
    message = execution.thread.messages.get(iteration=2, role="user")
    assert message.said_by == "person"
    assert message.content == "You needed: Which shop is meant?\nA person answers: The one in Bonn"
    assert "mission_loop_resumed" in kinds(execution)
    assert violations(5) == []


def test_the_same_instruction_three_times_asks_a_person(agent: ConfiguredAgent, model: Model):
    model.answers = ["A.", "B.", "C."]
    model.decisions = [go_on("Sort the rest.")] * 3
    execution = run_until_parked(mission(agent, loop_prompt="Go.").dispatch())
    assert (execution.status, execution.loop_status, execution.iteration) == ("interrupted", "blocked", 3)
    assert "no progress" in execution.human_requests.get().message


def test_a_turn_that_fails_is_judged_like_any_other_round(agent: ConfiguredAgent, model: Model):
    model.answers = [ModelRefused("not allowed"), "Sorted."]
    model.decisions = [go_on("Sort them without names."), decision("complete", evidence="Sorted.")]
    execution = run_until_parked(mission(agent, loop_prompt="Go.").dispatch())
    assert (execution.status, execution.iteration) == ("finished", 2)
    assert "log: this round's turn failed (model_refused)" in model.judged[0].contents[0].content
    assert [row.failure_code for row in execution.iterations.order_by("n")] == ["model_refused", None]


def test_three_failed_turns_in_a_row_fail_the_mission(agent: ConfiguredAgent, model: Model):
    model.answers = ["Sorted A.", *[ModelRefused("not allowed")] * 3]
    model.decisions = [go_on("Sort B."), go_on("Try B again."), go_on("Try C.")]
    execution = run_until_parked(mission(agent, loop_prompt="Go.").dispatch())
    assert (execution.status, execution.loop_status, execution.iteration) == ("failed", "failed", 4)
    assert execution.failure_code == "model_refused"
    assert violations(5) == []


def test_turns_that_use_up_their_steps_have_not_used_up_the_iterations(agent: ConfiguredAgent, model: Model):
    agent.limits = {"max_steps": 1}
    agent.save()
    model.answers = [ToolCall(tool_call_id=f"call-{n}", name="nothing") for n in range(3)]
    model.decisions = [go_on("Sort B."), go_on("Sort C.")]
    execution = run_until_parked(mission(agent, loop_prompt="Go.").dispatch())
    assert (execution.status, execution.loop_status, execution.iteration) == ("failed", "failed", 3)
    assert execution.failure_code == "no_progress"
    assert set(execution.iterations.values_list("failure_code", flat=True)) == {"limit_reached"}
    assert violations(5) == []


def test_a_model_that_is_away_puts_the_iteration_off_and_pays_nothing_twice(
    agent: ConfiguredAgent, model: Model
):
    model.answers = ["Sorted."]
    model.decisions = [ModelUnavailable("overloaded"), decision("complete", evidence="Sorted.")]
    execution = run_until_parked(mission(agent, loop_prompt="Go.").dispatch())
    assert (execution.status, execution.iteration, len(model.asked)) == ("finished", 1, 1)
    assert kinds(execution).count("mission_iteration_started") == 1
    assert kinds(execution).count("execution_resumed") == 1


def test_an_edit_of_a_mission_changes_later_dispatches_only(agent: ConfiguredAgent, model: Model):
    loop = mission(agent, loop_prompt="Go {iteration}.", max_iterations=3)
    before = loop.dispatch()
    loop.prompt, loop.loop_prompt, loop.max_iterations = "Burn all orders.", None, 1
    loop.save()
    model.answers, model.decisions = ["Sorted."], [decision("complete", evidence="Sorted.")]
    execution = run_until_parked(before)
    assert execution.max_iterations == 3
    assert "Sort all orders." in model.judged[0].contents[0].content
    assert "Go 1." in model.judged[0].contents[0].content
    model.answers = ["Burnt."]
    later = run_until_parked(loop.dispatch())
    assert (later.loop_status, later.output) == (None, {"response": "Burnt."})


def test_a_key_dispatches_once(agent: ConfiguredAgent):
    loop = mission(agent, loop_prompt="Go.")
    assert loop.dispatch(idempotency_key="monday").pk == loop.dispatch(idempotency_key="monday").pk
    assert loop.executions.count() == 1


def test_a_blank_loop_prompt_is_none(agent: ConfiguredAgent):
    assert mission(agent, loop_prompt="  \n").is_loop is False


def test_the_delay_of_a_loop_is_in_the_row_and_holds_no_worker(agent: ConfiguredAgent, model: Model):
    model.answers, model.decisions = ["Sorted A."], [go_on("Sort B.")]
    made = mission(agent, loop_prompt="Go.", loop_delay_seconds=3600).dispatch()
    assert run_claimed(claim(made.pk)) is Outcome.HANDED_ON
    made.refresh_from_db()
    assert (made.status, made.loop_status, made.claim_id) == ("in_progress", "running", None)
    assert 3590 < (made.next_run_at - database_now("default")).total_seconds() <= 3600
    assert claim(made.pk) is None


def test_a_doubled_wake_up_of_an_iteration_does_nothing(agent: ConfiguredAgent, model: Model):
    model.answers, model.decisions = ["Sorted A."], [go_on("Sort B.")]
    made = mission(agent, loop_prompt="Go.").dispatch()
    assert run_claimed(claim(made.pk, 1)) is Outcome.HANDED_ON
    assert claim(made.pk, 1) is None


def test_a_new_iteration_looks_for_no_journal_and_one_that_is_taken_over_finds_it(
    agent: ConfiguredAgent, model: Model
):
    model.answers = ["Sorted A.", "Sorted B."]
    model.decisions = [go_on("Sort B."), ModelUnavailable("overloaded"), go_on("Sort C.")]
    made = mission(agent, loop_prompt="Go.").dispatch()
    first = claim(made.pk)
    assert (first.is_fresh, run_claimed(first)) == (True, Outcome.HANDED_ON)
    second = claim(made.pk)
    assert (second.is_fresh, run_claimed(second)) == (True, Outcome.RELEASED)
    third = claim(made.pk, ignore_due=True)
    assert (third.is_fresh, run_claimed(third)) == (False, Outcome.HANDED_ON)
    assert len(model.asked) == 2
    assert violations(5) == []

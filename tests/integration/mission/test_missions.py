"""Missions from dispatch to their end: one-shot, loops, and what people and supervisors say."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from agency.agent import Message, ToolCall
from agency.agent.llm import LlmRequest, LlmResponse
from agency.enums import EventKind, HumanDecision
from agency.execution import answering
from agency.execution.invariants import violations
from agency.human.answers import ItemAnswer
from agency.models import ConfiguredAgent, Execution, Mission
from agency.testing import run_until_parked

pytestmark = pytest.mark.django_db

Script = Callable[..., Any]


class Model:
    """A worker that answers in turn, and a supervisor that decides in turn."""

    model_name = "scripted"

    def __init__(self, answers: list[Any], decisions: list[Any]) -> None:
        self.answers, self.decisions = answers, decisions
        self.asked: list[LlmRequest] = []
        self.judged: list[LlmRequest] = []

    def generate(self, request: LlmRequest) -> LlmResponse:
        if request.output_schema is not None:
            self.judged.append(request)
            return _said(self.decisions.pop(0))
        self.asked.append(request)
        answer = self.answers.pop(0)
        return LlmResponse([answer]) if isinstance(answer, ToolCall) else _said(answer)


def _said(what: Any) -> LlmResponse:
    text = what if isinstance(what, str) else json.dumps(what)
    return LlmResponse([Message(role="assistant", content=text)])


def decision(status: str, **fields: Any) -> dict[str, Any]:
    return {"status": status, "reason": f"because {status}", "summary": f"so far {status}", **fields}


def go_on(what: str) -> dict[str, Any]:
    return decision("continue", next_input=what)


@pytest.fixture
def model(request: pytest.FixtureRequest) -> Any:
    from agency.runtime.wiring import use_client

    made = Model([], [])
    with use_client(made):
        yield made


@pytest.fixture
def agent(agency_agent: Callable[..., ConfiguredAgent]) -> ConfiguredAgent:
    return agency_agent("clerk")


def mission(agent: ConfiguredAgent, **fields: Any) -> Mission:
    given = {"name": "Orders", "prompt": "Sort all orders.", **fields}
    return Mission.objects.create(owner=agent.owner, agent=agent, **given)


def kinds(execution: Execution) -> list[str]:
    found = execution.events.exclude(kind=EventKind.CONTENT.value).order_by("seq")
    return list(found.values_list("kind", flat=True))


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

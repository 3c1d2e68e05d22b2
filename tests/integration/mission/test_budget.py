"""What a mission may spend in all: at the budget a person is asked, and the same iteration goes on."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agency.agent import Agent, BaseAgent, BaseAgentTool, BaseLLMTool, Effect, Message, ToolCall
from agency.agent.llm import LlmRequest, LlmResponse
from agency.agent.testing import ScriptedLlm
from agency.errors import InvalidInput
from agency.execution import registry
from agency.execution.invariants import violations
from agency.mission import missions, prices
from agency.models import ConfiguredAgent, Execution, Mission
from agency.models.clock import Now
from agency.runtime import sweep
from agency.runtime.wiring import use_client
from agency.testing import run_until_parked
from tests.integration.mission.people import (
    Model,
    answer,
    cashier,
    complete,
    go_on,
    kinds,
    look,
    looking,
    loop,
    made,
    mission,
    model,
    open_request,
    state,
)

__all__ = ["cashier", "model"]
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def price(model: Model) -> None:
    """Each call of a model costs ten tokens."""
    model.tokens = 10


class TestWithinATurn:
    @pytest.fixture
    def spent(self, cashier: ConfiguredAgent, model: Model) -> Execution:
        model.answers = [looking("a"), looking("b"), "Paid."]
        execution = run_until_parked(mission(cashier, limits={"tokens": 15}).dispatch())
        assert state(execution) == ("interrupted", None, 0)
        return execution

    def test_reaching_it_asks_with_what_was_spent(self, spent: Execution, model: Model) -> None:
        request = open_request(spent)
        assert (request.kind, request.iteration) == ("budget", 1)
        assert request.message == (
            "The mission has spent 20 of its 15 tokens. Raise the limit so that it goes on, or stop it."
        )
        item = request.items.get()
        assert item.proposed == {"spent": {"tokens": 20}, "limits": {"tokens": 15}}
        assert (len(model.asked), made) == (2, ["look", "look"])
        assert spent.failure_code is None
        assert violations(5) == []

    @pytest.mark.parametrize(
        "wrong",
        [{"tokens": 20}, {"tokens": "50"}, {"tokens": 50.5}, {"tokens": 10**12}, {"cost": 1}, {}, 50, True],
    )
    def test_a_cap_that_does_not_fit_is_refused(self, spent: Execution, wrong: Any) -> None:
        with pytest.raises(InvalidInput) as caught:
            answer(spent, "answer", answer=wrong)
        assert caught.value.errors[0]["path"].startswith("items[0].answer")
        assert open_request(spent).items.get().decision is None

    def test_when_it_is_raised_the_same_turn_goes_on_and_pays_nothing_twice(
        self, spent: Execution, model: Model
    ) -> None:
        assert answer(spent, "answer", answer={"tokens": 25}).refused is None
        done = run_until_parked(spent)
        assert (done.status, done.output) == ("finished", {"response": "Paid."})
        assert (len(model.asked), made) == (3, ["look", "look"])
        assert done.usage["input_tokens"] == 30
        assert done.metadata["loop_config"]["limits"] == {"tokens": 25}
        assert done.mission.limits == {"tokens": 15}
        assert [row.n for row in done.iterations.all()] == [1]
        assert violations(5) == []

    def test_it_can_be_reached_again(self, spent: Execution, model: Model) -> None:
        model.answers = [looking("c"), "Paid."]
        answer(spent, "answer", answer={"tokens": 21})
        execution = run_until_parked(spent)
        assert open_request(execution).items.get().proposed["spent"] == {"tokens": 30}
        answer(execution, "answer", answer={"tokens": 31})
        assert run_until_parked(execution).status == "finished"
        assert made == ["look"] * 3

    def test_giving_up_is_no_success(self, spent: Execution) -> None:
        assert answer(spent, "give_up").refused is None
        spent.refresh_from_db()
        assert (spent.status, spent.failure_code, spent.output) == ("failed", "budget_exceeded", None)
        assert spent.usage["input_tokens"] == 20
        assert violations(5) == []

    def test_what_nobody_decides_ends_as_expired(self, spent: Execution) -> None:
        spent.human_requests.update(expires_at=Now(-1))
        sweep.close()
        spent.refresh_from_db()
        assert (spent.status, spent.failure_code) == ("failed", "request_expired")
        assert (spent.usage["input_tokens"], spent.usage["model_calls"]) == (20, 2)


class TestOfALoop:
    def test_between_iterations_nothing_is_begun(self, cashier: ConfiguredAgent, model: Model) -> None:
        model.answers, model.decisions = ["Paid A.", "Paid B."], [go_on("Pay B."), complete("Paid B.")]
        execution = run_until_parked(loop(cashier, limits={"tokens": 20}).dispatch())
        assert state(execution) == ("interrupted", "running", 1)
        assert (open_request(execution).iteration, len(model.asked)) == (2, 1)
        answer(execution, "answer", answer={"tokens": 100})
        done = run_until_parked(execution)
        assert state(done) == ("finished", "completed", 2)
        assert done.thread.messages.get(iteration=2, role="user").content == "Pay B."
        assert "mission_loop_blocked" not in kinds(done)
        assert violations(5) == []

    def test_the_supervisors_calls_count_and_wait_for_the_budget_too(
        self, cashier: ConfiguredAgent, model: Model
    ) -> None:
        model.answers, model.decisions = ["Paid."], [complete("Paid.")]
        execution = run_until_parked(loop(cashier, limits={"tokens": 10}).dispatch())
        assert state(execution) == ("interrupted", "running", 0)
        assert model.judged == []
        answer(execution, "answer", answer={"tokens": 11})
        done = run_until_parked(execution)
        assert state(done) == ("finished", "completed", 1)
        assert (len(model.asked), done.usage["input_tokens"]) == (1, 20)
        assert violations(5) == []

    def test_each_call_of_the_supervisor_waits_for_it(self, cashier: ConfiguredAgent, model: Model) -> None:
        model.answers, model.decisions = ["Paid."], ["no decision", complete("Paid.")]
        execution = run_until_parked(loop(cashier, limits={"tokens": 20}).dispatch())
        assert state(execution) == ("interrupted", "running", 0)
        assert len(model.judged) == 1
        answer(execution, "answer", answer={"tokens": 21})
        done = run_until_parked(execution)
        assert state(done) == ("finished", "completed", 1)
        assert (len(model.asked), len(model.judged), done.usage["input_tokens"]) == (1, 2, 30)
        assert violations(5) == []

    def test_a_loop_that_is_given_up_has_failed(self, cashier: ConfiguredAgent, model: Model) -> None:
        model.answers = ["Paid."]
        execution = run_until_parked(loop(cashier, limits={"tokens": 10}).dispatch())
        answer(execution, "give_up")
        execution.refresh_from_db()
        assert state(execution) == ("failed", "failed", 0)
        assert execution.failure_code == "budget_exceeded"
        assert kinds(execution)[-2:] == ["mission_loop_failed", "execution_failed"]
        assert violations(5) == []

    def test_money_is_a_budget_as_tokens_are(self, cashier: ConfiguredAgent, model: Model) -> None:
        model.cost = 0.1
        model.answers, model.decisions = (
            ["A.", looking("b"), "B."],
            [go_on("Do B."), complete("There is enough.")],
        )
        limits = {"tokens": 30, "cost": 0.3}
        execution = run_until_parked(loop(cashier, limits=limits).dispatch())
        assert "30 of its 30 tokens and $0.3000 of its $0.3000" in open_request(execution).message
        with pytest.raises(InvalidInput, match="'cost' is a required property"):
            answer(execution, "answer", answer={"tokens": 100})
        answer(execution, "answer", answer={"tokens": 100, "cost": 1})
        done = run_until_parked(execution)
        assert state(done) == ("finished", "completed", 2)
        assert done.usage["cost"] == pytest.approx(0.5)


class Scout(BaseAgent):
    """Looks around until something stops it."""

    AGENT_KEY = "scout"
    NAME = "scout"
    DESCRIPTION = "Looks around."
    TOOLS = [look]


class AskScout(BaseAgentTool):
    NAME = "scout"
    AGENT = Scout


class Chief(BaseAgent):
    """Sends scouts."""

    AGENT_KEY = "chief"
    NAME = "chief"
    TOOLS = [AskScout]
    DEFAULT_MODEL = "scripted:tests"


class Scouting(Model):
    """Sends six scouts at once, each of which looks for ever; a call takes a while."""

    def generate(self, request: LlmRequest) -> LlmResponse:
        if request.tools[0].name == "look":
            time.sleep(0.02)
            self.asked.append(request)
            return LlmResponse([looking("")], self._usage())
        sent = [ToolCall(tool_call_id=f"s{n}", name="scout", arguments={"task": "look"}) for n in range(6)]
        return LlmResponse([*sent], self._usage())


class TestOfAgentsAtTheSameTime:
    @pytest.fixture
    def chief(self, agency_agent: Callable[..., ConfiguredAgent]) -> Iterator[ConfiguredAgent]:
        with registry.isolated(), use_client(Scouting(tokens=10, cost=0.1)):
            registry.register(Chief)
            yield agency_agent("chief")

    @pytest.mark.parametrize(
        ("limits", "spent"), [({"tokens": 45}, {"tokens": 50}), ({"cost": 0.75}, {"cost": 0.8})]
    )
    def test_they_pass_it_by_one_call_together(
        self, chief: ConfiguredAgent, limits: dict[str, Any], spent: dict[str, Any]
    ) -> None:
        execution = run_until_parked(mission(chief, limits=limits).dispatch())
        assert state(execution) == ("interrupted", None, 0)
        ((name, used),) = open_request(execution).items.get().proposed["spent"].items()
        assert {name: pytest.approx(used)} == spent
        assert violations(5) == []

    def test_what_one_execution_spends_is_nothing_to_the_next(self, chief: ConfiguredAgent) -> None:
        """A budget is an execution's: two of one mission have it once each."""
        standing = mission(chief, limits={"tokens": 45})
        both = [standing.dispatch(), standing.dispatch()]
        for execution in both:
            run_until_parked(execution)
        asked = [open_request(execution).items.get().proposed["spent"] for execution in both]
        assert asked == [{"tokens": 50}] * 2


def test_a_limit_of_the_agent_stays_one(cashier: ConfiguredAgent, model: Model) -> None:
    cashier.limits = {"max_tokens": 20}
    cashier.save()
    model.answers = [looking("a"), looking("b"), "Paid."]
    execution = run_until_parked(mission(cashier, limits={"tokens": 100}).dispatch())
    assert (execution.status, execution.failure_code) == ("failed", "limit_reached")


@pytest.mark.parametrize(
    ("limits", "path"),
    [({"tokens": 0}, "limits.tokens"), ({"money": 1}, "limits.money"), ({"cost": "1"}, "limits.cost")],
)
def test_a_mission_with_limits_that_do_not_fit_is_not_dispatched(
    cashier: ConfiguredAgent, limits: dict[str, Any], path: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        mission(cashier, limits=limits).dispatch()
    assert caught.value.errors[0]["path"] == path


UNPRICED, PRICED = "openai:no-such-model", "openai:gpt-5"


@pytest.mark.parametrize(
    ("own", "fields", "named"),
    [
        (UNPRICED, {}, UNPRICED),
        (PRICED, {"loop_prompt": "Go.", "supervisor_model": UNPRICED}, UNPRICED),
        (UNPRICED, {"loop_prompt": "Go.", "supervisor_model": PRICED}, UNPRICED),
    ],
)
def test_a_budget_in_money_that_no_price_leads_to_is_refused_with_the_fix(
    cashier: ConfiguredAgent, own: str, fields: dict[str, Any], named: str
) -> None:
    cashier.model = own
    given = {"name": "Pay", "prompt": "Pay.", "limits": {"cost": 5}, **fields}
    with pytest.raises(InvalidInput, match=f"price of {named} is not known; cap limits.tokens") as caught:
        missions.create(cashier.owner, agent=cashier, **given)
    assert caught.value.errors[0]["path"] == "limits.cost"
    assert not Mission.objects.exists()


@pytest.mark.parametrize("own", [PRICED, "local:default", "scripted:tests"])
def test_a_budget_in_money_is_taken_where_the_price_is_known_or_nothing_is_paid(
    cashier: ConfiguredAgent, own: str
) -> None:
    cashier.model = own
    given = {"name": "Pay", "prompt": "Pay.", "limits": {"cost": 5}, "supervisor_model": UNPRICED}
    row = missions.create(cashier.owner, agent=cashier, **given)
    assert Mission.objects.get() == row


def test_a_change_that_leaves_a_budget_without_a_price_is_refused(cashier: ConfiguredAgent) -> None:
    row = missions.create(cashier.owner, agent=cashier, name="Pay", prompt="Pay.", limits={"cost": 5})
    with pytest.raises(InvalidInput, match="is not known"):
        missions.update(row, loop_prompt="Go.", supervisor_model=UNPRICED)
    assert not Mission.objects.get().is_loop
    assert missions.update(row, supervisor_model=UNPRICED).refused is None
    with pytest.raises(InvalidInput, match="is not known"):
        missions.update(row, loop_prompt="Go.")
    changed = missions.update(row, loop_prompt="Go.", limits={"tokens": 500}).mission
    assert (changed.is_loop, changed.limits) == (True, {"tokens": 500})


def test_the_clients_of_a_project_say_themselves_what_they_cost(
    cashier: ConfiguredAgent, settings: Any
) -> None:
    settings.AGENCY = {"LLM_CLIENT_FACTORY": "tests.order_desk.client"}
    cashier.model = UNPRICED
    missions.create(cashier.owner, agent=cashier, name="Pay", prompt="Pay.", limits={"cost": 5})
    assert Mission.objects.get().limits == {"cost": 5}


class Appraise(BaseLLMTool):
    NAME = "appraise"
    DESCRIPTION = "Say what a thing is worth."
    EFFECT = Effect.READ

    def run(self, thing: str) -> str:
        return self.llm.generate(LlmRequest(contents=[Message(role="user", content=thing)])).text


class Appraiser(BaseAgent):
    AGENT_KEY = "appraiser"
    NAME = "Appraiser"
    SYSTEM_PROMPT = "You buy things."
    TOOLS = [Appraise]
    DEFAULT_MODEL = "scripted:tests"


def test_what_a_tool_asks_of_a_model_counts(
    agency_agent: Callable[..., ConfiguredAgent], model: Model
) -> None:
    registry.register(Appraiser)
    appraise = ToolCall(tool_call_id="a", name="appraise", arguments={"thing": "a lamp"})
    model.answers = [appraise, "Five.", "Bought."]
    row = mission(agency_agent("appraiser"), limits={"tokens": 20})
    execution = run_until_parked(row.dispatch())
    assert state(execution) == ("interrupted", None, 0)
    assert open_request(execution).items.get().proposed["spent"] == {"tokens": 20}
    answer(execution, "answer", answer={"tokens": 100})
    done = run_until_parked(execution)
    assert (done.status, done.output) == ("finished", {"response": "Bought."})
    spent = {name: done.usage[name] for name in ("model_calls", "tool_calls", "input_tokens")}
    assert spent == {"model_calls": 3, "tool_calls": 1, "input_tokens": 30}
    assert violations(5) == []


def test_an_iteration_may_hold_a_worker_for_so_long_only(cashier: ConfiguredAgent, model: Model) -> None:
    model.answers = [looking("a"), "Paid."]
    execution = run_until_parked(loop(cashier, limits={"iteration_seconds": 1e-6}).dispatch())
    assert state(execution) == ("failed", "failed", 1)
    assert execution.failure_code == "deadline_exceeded"
    assert execution.failure_summary == "Iteration 1 ran out of its time."
    assert violations(5) == []


class TestOfModelsThatChange:
    """A budget in money was fine when the mission was made; then its agent got a model without a price."""

    def test_what_is_dispatched_after_that_is_refused_with_the_fix(self, cashier: ConfiguredAgent) -> None:
        cashier.model = PRICED
        standing = missions.create(
            cashier.owner, agent=cashier, name="Pay", prompt="Pay.", limits={"cost": 5}
        )
        cashier.model = UNPRICED
        with pytest.raises(InvalidInput, match=f"price of {UNPRICED} is not known") as caught:
            standing.dispatch()
        assert caught.value.errors[0]["path"] == "limits.cost"
        assert not Execution.objects.exists()

    def test_what_was_dispatched_before_asks_for_a_cap_on_tokens(
        self, cashier: ConfiguredAgent, model: Model
    ) -> None:
        """The snapshot names no model, and what its class or the environment chooses is another by now."""
        model.answers, model.decisions = ["Paid."], [complete("Paid.")]
        waiting = loop(cashier, limits={"cost": 5}).dispatch()
        model.model_name = UNPRICED
        execution = run_until_parked(waiting)
        assert state(execution) == ("interrupted", "running", 0)
        request = open_request(execution)
        assert request.message == (
            f"The mission may spend $5.0000, but the price of {UNPRICED} is not known, so that would never "
            "be reached. Cap its tokens so that it goes on, or stop it."
        )
        assert (model.asked, request.kind) == ([], "budget")
        with pytest.raises(InvalidInput):
            answer(execution, "answer", answer={"cost": 10})
        answer(execution, "answer", answer={"tokens": 100})
        done = run_until_parked(execution)
        assert state(done) == ("finished", "completed", 1)
        assert done.metadata["loop_config"]["limits"] == {"cost": 5, "tokens": 100}
        assert violations(5) == []

    def test_a_loop_whose_supervisor_has_no_price_asks_too(
        self, cashier: ConfiguredAgent, model: Model
    ) -> None:
        waiting = loop(cashier, limits={"cost": 5}, supervisor_model=PRICED).dispatch()
        config = {**waiting.metadata["loop_config"], "supervisor_model": UNPRICED}
        Execution.objects.filter(pk=waiting.pk).update(metadata={**waiting.metadata, "loop_config": config})
        assert open_request(run_until_parked(waiting)).kind == "budget"

    def test_one_that_caps_tokens_too_just_goes_on(self, cashier: ConfiguredAgent, model: Model) -> None:
        model.answers, model.model_name = ["Paid."], UNPRICED
        execution = run_until_parked(mission(cashier, limits={"cost": 5, "tokens": 100}).dispatch())
        assert execution.status == "finished"

    def test_the_models_of_agents_among_the_tools_count(self) -> None:
        scout = Agent("scout", ScriptedLlm(model_name=UNPRICED))
        leader = Agent("leader", ScriptedLlm(model_name=PRICED), tools=[scout.as_tool("Scouts.")])
        boss = Agent("boss", ScriptedLlm(model_name=PRICED), tools=[leader.as_tool("Leads.")])
        assert prices.unpriced(prices.asked_by(boss)) == [UNPRICED]

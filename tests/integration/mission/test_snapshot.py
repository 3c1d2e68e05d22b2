"""What an execution keeps of its mission: all that decides how it runs, as it was at the dispatch."""

from collections.abc import Iterator
from typing import Any

import pytest

from agency.models import ConfiguredAgent
from agency.runtime.conf import current
from agency.testing import run_until_parked
from tests.integration.mission.scripted import Model, decision, mission

pytestmark = pytest.mark.django_db
HOSTED, LOCAL = "anthropic:claude-haiku-4-5", "local:qwen2.5-1.5b-instruct"
clients: dict[str, Model] = {}


def client_named(model: str) -> Model:
    """`AGENCY["LLM_CLIENT_FACTORY"]` of these tests: another client for each model."""
    return clients.setdefault(model, Model())


@pytest.fixture
def factory(settings: Any) -> Iterator[None]:
    clients.clear()
    settings.AGENCY = {"LLM_CLIENT_FACTORY": f"{__name__}.client_named"}
    assert current().LLM_CLIENT_FACTORY
    yield
    clients.clear()


def test_the_configuration_of_the_loop_is_kept_whole(agent: ConfiguredAgent) -> None:
    execution = mission(
        agent,
        loop_prompt="Go {iteration}.",
        max_iterations=7,
        loop_delay_seconds=30,
        supervisor_model=HOSTED,
        limits={"tokens": 500},
    ).dispatch()
    assert execution.metadata["loop_config"] == {
        "is_loop": True,
        "loop_prompt": "Go {iteration}.",
        "max_iterations": 7,
        "loop_delay_seconds": 30,
        "supervisor_model": HOSTED,
        "caps": {"messages": 200, "characters": 24_000},
        "completion_checks": [],
        "limits": {"tokens": 500},
    }
    assert execution.metadata["trigger"] == {"by": "call"}
    assert (execution.iteration, execution.max_iterations, execution.loop_decision) == (0, 7, None)
    assert (execution.status, execution.loop_status) == ("pending", "running")
    assert execution.next_run_at is not None
    assert execution.thread.messages.count() == 0


def test_a_one_shot_mission_is_no_loop_from_its_dispatch_on(agent: ConfiguredAgent) -> None:
    execution = mission(agent, loop_prompt=" ").dispatch()
    config = execution.metadata["loop_config"]
    assert (config["is_loop"], config["loop_prompt"]) == (False, None)
    assert (execution.status, execution.loop_status, execution.max_iterations) == ("pending", None, None)


@pytest.mark.parametrize(
    ("worker", "supervisor", "characters"),
    [(HOSTED, "", 24_000), (LOCAL, "", 6_000), (HOSTED, LOCAL, 6_000), (LOCAL, HOSTED, 24_000)],
)
def test_how_much_is_read_depends_on_the_model_that_reads(
    agent: ConfiguredAgent, worker: str, supervisor: str, characters: int
) -> None:
    ConfiguredAgent.objects.filter(pk=agent.pk).update(model=worker)
    agent.refresh_from_db()
    execution = mission(agent, loop_prompt="Go.", supervisor_model=supervisor).dispatch()
    assert execution.metadata["loop_config"]["caps"]["characters"] == characters


def test_a_local_supervisor_reads_long_orders_cut_with_a_note_and_a_hosted_one_reads_them_whole(
    agent: ConfiguredAgent, model: Model
) -> None:
    order = f"Sort all orders. {'Mind the rules. ' * 2_000}Then say so."
    sent: list[str] = []
    for supervisor in (LOCAL, HOSTED):
        model.answers, model.decisions = ["Sorted."], [decision("complete", evidence="Sorted.")]
        given = {"prompt": order, "loop_prompt": f"Is it done? {order}", "supervisor_model": supervisor}
        run_until_parked(mission(agent, **given).dispatch())
        sent.append(model.judged[-1].contents[-1].content)
    local, hosted = sent
    assert len(local) < 14_000
    assert local.startswith("Objective: Sort all orders. Mind") and "characters left out …]" in local
    assert "Then say so." in local and "Is it done? Sort all orders." in local
    assert hosted.count(order) == 2


@pytest.mark.usefixtures("factory")
def test_a_supervisor_may_be_another_model_than_the_agents(agent: ConfiguredAgent) -> None:
    ConfiguredAgent.objects.filter(pk=agent.pk).update(model="openai:gpt-5")
    agent.refresh_from_db()
    worker, supervisor = client_named("openai:gpt-5"), client_named(HOSTED)
    worker.answers, supervisor.decisions = ["Sorted."], [decision("complete", evidence="Sorted.")]
    execution = run_until_parked(mission(agent, loop_prompt="Go.", supervisor_model=HOSTED).dispatch())
    assert execution.loop_status == "completed"
    assert (len(worker.asked), len(worker.judged)) == (1, 0)
    assert (len(supervisor.asked), len(supervisor.judged)) == (0, 1)


@pytest.mark.usefixtures("factory")
def test_without_one_of_its_own_the_supervisor_is_the_agents_model(agent: ConfiguredAgent) -> None:
    ConfiguredAgent.objects.filter(pk=agent.pk).update(model="openai:gpt-5")
    agent.refresh_from_db()
    both = client_named("openai:gpt-5")
    both.answers, both.decisions = ["Sorted."], [decision("complete", evidence="Sorted.")]
    run_until_parked(mission(agent, loop_prompt="Go.").dispatch())
    assert (len(both.asked), len(both.judged), list(clients)) == (1, 1, ["openai:gpt-5"])

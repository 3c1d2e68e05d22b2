"""One agent, three tools, an output type: right on a script, on the small model and on the default model."""

from collections.abc import Iterator

import pytest

from agency.agent import LlmClient, RunStatus
from agency.agent.providers import resolve_model
from agency.agent.testing import ScriptedLlm, call
from tests.e2e.local_models import one_server
from tests.order_desk import TASKS, Task, check, clerk

MODELS = [
    pytest.param("scripted", id="scripted"),
    pytest.param("small", marks=pytest.mark.local_model, id="small"),
    pytest.param("default", marks=pytest.mark.large_model, id="default"),
]


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "scripted":
        yield request.param
    else:
        yield from one_server(request.param)


def client(model: str, task: Task) -> LlmClient:
    if model != "scripted":
        return resolve_model(model)
    return ScriptedLlm(
        call("find_customer", company=task.company),
        [call("find_price", "2", article=task.article), call("find_stock", "3", article=task.article)],
        call("final_answer", **task.offer.model_dump()),
    )


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.article)
def test_the_agent_asks_every_tool_and_answers_in_the_promised_shape(task: Task) -> None:
    check(clerk(client("scripted", task)).run(task.inquiry), task)


@pytest.mark.parametrize("model", MODELS[1:], indirect=True)
def test_the_agent_does_so_on_a_real_model_too(model: str) -> None:
    task = TASKS[-1]
    check(clerk(client(model, task)).run(task.inquiry), task)


def test_one_conversation_holds_several_tasks(model: str) -> None:
    first, second = TASKS[0], TASKS[2]
    context = clerk(client(model, first)).run(first.inquiry).context
    result = clerk(client(model, second)).run(second.inquiry, context)
    assert result.status is RunStatus.COMPLETED
    assert result.output == second.offer

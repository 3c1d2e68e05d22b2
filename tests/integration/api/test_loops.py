"""Running missions over the API: their iterations, and what people and other systems tell them."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from agency.execution import registry
from agency.models import ConfiguredAgent, Execution, HumanRequest
from agency.models.clock import database_now
from agency.runtime.body import Outcome, run_claimed
from agency.runtime.claim import claim
from agency.runtime.wiring import use_client
from agency.testing import run_until_parked
from tests.integration.api.conftest import ApiClient
from tests.integration.api.test_problems import paths, problem_of
from tests.integration.mission.scripted import Model, decision, go_on, mission

DONE = decision("complete", evidence="All are sorted.")


@pytest.fixture
def model() -> Iterator[Model]:
    made = Model()
    with use_client(made):
        yield made


def run(agent: ConfiguredAgent, model: Model, *decisions: dict[str, Any], **fields: Any) -> str:
    """The id of a loop that was run until it ended or waits, with one more round for what comes then."""
    model.answers = [f"Answer {n}." for n in range(1, len(decisions) + 2)]
    model.decisions = [*decisions, DONE]
    execution = mission(agent, loop_prompt="Go on.", **{"max_iterations": 5, **fields}).dispatch()
    return str(run_until_parked(execution).pk)


WAIT = decision("wait", wait={"signal": "stock", "what_for": "the new stock"})
BLOCKED = decision("blocked", required_input={"question": "Which shop?"})


def test_the_ledger_shows_each_iteration_with_its_input_and_its_decision(
    api: ApiClient, agent: ConfiguredAgent, model: Model
) -> None:
    path = f"/executions/{run(agent, model, go_on('Sort B.'), BLOCKED)}"
    page = api.get(f"{path}/iterations").json()
    first, second = page["items"]
    assert (page["iteration"], page["after"]) == (2, 2)
    assert (first["n"], first["verdict"], first["input"]) == (1, "continue", "Sort all orders.")
    assert (first["answer"], first["next_input"]) == ("Answer 1.", "Sort B.")
    assert (first["summary"], first["reason"]) == ("so far continue", "because continue")
    assert (first["evidence"], first["wait"], first["required_input"]) == (None, None, None)
    assert first["usage"]["model_calls"] >= 2
    assert (second["verdict"], second["input"], second["next_input"]) == ("blocked", "Sort B.", None)
    assert second["required_input"]["question"] == "Which shop?"
    assert api.get(f"{path}/iterations", after=1).json()["items"] == [second]
    assert api.get(f"{path}/iterations", limit=1).json()["items"] == [first]
    assert paths(problem_of(api.get(f"{path}/iterations", after=-1), 422)) == ["after"]


def test_an_execution_says_where_its_loop_stands(
    api: ApiClient, agent: ConfiguredAgent, model: Model
) -> None:
    body = api.get(f"/executions/{run(agent, model, WAIT)}").json()
    assert (body["status"], body["loop_status"]) == ("in_progress", "waiting")
    assert (body["iteration"], body["current_iteration"], body["max_iterations"]) == (1, 1, 5)
    assert body["loop_decision"]["status"] == "wait"
    wait = body["wait"]
    assert (wait["kind"], wait["name"], wait["what_for"]) == ("signal", "stock", "the new stock")
    assert wait["until"] == body["next_run_at"]
    assert "memory" not in wait


def test_the_iteration_that_is_worked_on_is_the_current_one(
    api: ApiClient, agent: ConfiguredAgent, model: Model
) -> None:
    model.answers, model.decisions = ["Answer 1."], [go_on("Sort B.")]
    execution = mission(agent, loop_prompt="Go on.").dispatch()
    claimed = claim(execution.pk)
    assert claimed is not None
    body = api.get(f"/executions/{execution.pk}").json()
    assert (body["iteration"], body["current_iteration"]) == (0, 1)
    assert run_claimed(claimed) is Outcome.HANDED_ON
    body = api.get(f"/executions/{execution.pk}").json()
    assert body["iteration"] == 1


def test_a_signal_ends_the_wait_for_it(api: ApiClient, agent: ConfiguredAgent, model: Model) -> None:
    execution_id = run(agent, model, WAIT)
    other = api.post(f"/executions/{execution_id}/signals/other", {"pieces": 7})
    assert (other.status_code, other.json()["ended_wait"]) == (202, False)
    sent = api.post(f"/executions/{execution_id}/signals/stock", {"pieces": 7})
    assert (sent.status_code, sent.json()["name"], sent.json()["ended_wait"]) == (202, "stock", True)
    body = api.get(f"/executions/{execution_id}").json()
    assert (body["loop_status"], body["wait"]) == ("running", None)
    run_until_parked(execution_id)
    heard = api.get(f"/executions/{execution_id}/iterations", after=1).json()["items"][0]["input"]
    assert "7" in heard


@pytest.mark.parametrize("payload", [None, 0, "", "text", [], [1, None], {"a": {"b": [True]}}])
def test_any_json_may_come_with_a_signal(
    api: ApiClient, agent: ConfiguredAgent, model: Model, payload: Any
) -> None:
    execution_id = run(agent, model, WAIT)
    assert api.post(f"/executions/{execution_id}/signals/stock", payload).status_code == 202
    assert Execution.objects.get(pk=execution_id).signals.get().payload == payload


def test_a_signal_needs_no_body(api: ApiClient, agent: ConfiguredAgent, model: Model) -> None:
    execution_id = run(agent, model, WAIT)
    path = f"/api/executions/{execution_id}/signals/stock"
    sent = api.client.generic("POST", path, headers=api.headers)
    assert (sent.status_code, sent.json()["ended_wait"]) == (202, True)


def test_a_signal_that_is_too_large_or_no_json_is_refused(
    api: ApiClient, agent: ConfiguredAgent, model: Model
) -> None:
    path = f"/executions/{run(agent, model, WAIT)}/signals"
    assert paths(problem_of(api.post(f"{path}/stock", "x" * 65_536), 422)) == ["payload"]
    problem_of(api.post(f"{path}/stock", b"{"), 400)
    assert paths(problem_of(api.post(f"{path}/{'x' * 101}", 1), 422)) == ["name"]
    assert paths(problem_of(api.post(f"{path}/%20", 1), 422)) == ["name"]


def test_an_ended_execution_takes_no_signal(api: ApiClient, agent: ConfiguredAgent, model: Model) -> None:
    body = problem_of(api.post(f"/executions/{run(agent, model)}/signals/stock", 1), 409)
    assert body["detail"] == "The execution is finished; it takes no more signals."


@pytest.mark.parametrize(
    "wait", [{"signal": "stock"}, {"seconds": 3600}, {"until": "2040-01-01T00:00:00Z"}], ids=str
)
def test_run_now_ends_any_wait(
    api: ApiClient, agent: ConfiguredAgent, model: Model, wait: dict[str, Any]
) -> None:
    execution_id = run(agent, model, decision("wait", wait=wait))
    resumed = api.post(f"/executions/{execution_id}/resume")
    assert (resumed.status_code, resumed.json()["loop_status"]) == (200, "running")
    assert resumed.json()["wait"] is None
    assert run_until_parked(execution_id).status == "finished"
    assert "is finished" in problem_of(api.post(f"/executions/{execution_id}/resume"), 409)["detail"]


def test_what_waits_for_a_person_is_not_run_now(api: ApiClient, agent: ConfiguredAgent, model: Model) -> None:
    problem_of(api.post(f"/executions/{run(agent, model, BLOCKED)}/resume"), 409)


def test_a_reached_limit_is_extended_once_for_each_wish(
    api: ApiClient, agent: ConfiguredAgent, model: Model
) -> None:
    execution_id = run(agent, model, go_on("Sort B."), max_iterations=1)
    path = f"/executions/{execution_id}"
    body = api.get(path).json()
    assert (body["status"], body["loop_status"]) == ("failed", "limit_reached")
    assert (body["failure_code"], body["generation"]) == ("limit_reached", 1)
    extended = api.post(f"{path}/extend", {"iterations": 2, "generation": 1})
    assert extended.status_code == 200, extended.content
    body = extended.json()
    assert (body["status"], body["max_iterations"], body["generation"]) == ("in_progress", 3, 2)
    again = api.post(f"{path}/extend", {"iterations": 2, "generation": 1})
    assert "extended before" in problem_of(again, 409)["detail"]
    problem_of(api.post(f"{path}/extend", {"iterations": 2}), 409)
    assert run_until_parked(execution_id).status == "finished"


@pytest.mark.parametrize("iterations", [0, 101, True, "2", 1.5, None])
def test_an_extension_out_of_bounds_is_refused(
    api: ApiClient, agent: ConfiguredAgent, model: Model, iterations: Any
) -> None:
    execution_id = run(agent, model, go_on("Sort B."), max_iterations=1)
    refused = api.post(f"/executions/{execution_id}/extend", {"iterations": iterations})
    assert paths(problem_of(refused, 422)) == ["iterations"]


def asked(api: ApiClient, execution_id: str) -> dict[str, Any]:
    return api.get(f"/executions/{execution_id}").json()["request"]


def given(request: dict[str, Any], **more: Any) -> dict[str, Any]:
    item = request["items"][0]
    return {"items": [{"call_id": item["call_id"], "digest": item["digest"], "decision": "answer", **more}]}


def test_an_answer_of_the_wrong_type_is_refused_and_asks_on(
    api: ApiClient, agent: ConfiguredAgent, model: Model
) -> None:
    execution_id = run(agent, model, BLOCKED)
    request = asked(api, execution_id)
    path = f"/human-requests/{request['id']}/answer"
    for answer in (7, [], {}, ""):
        refused = problem_of(api.post(path, given(request, answer=answer)), 422)
        assert set(paths(refused)) == {"items[0].answer"}
    assert asked(api, execution_id) == request


def test_of_two_answers_the_second_is_shown_the_first(
    api: ApiClient, agent: ConfiguredAgent, model: Model
) -> None:
    request = asked(api, run(agent, model, BLOCKED))
    path = f"/human-requests/{request['id']}/answer"
    assert api.post(path, given(request, answer="Bonn")).status_code == 200
    late = problem_of(api.post(path, given(request, answer="Ulm")), 409)
    assert late["request"]["items"][0]["answer"] == "Bonn"


def test_an_answer_after_its_expiry_is_refused(api: ApiClient, agent: ConfiguredAgent, model: Model) -> None:
    request = asked(api, run(agent, model, BLOCKED))
    HumanRequest.objects.update(expires_at=database_now() - timedelta(seconds=1))
    late = problem_of(api.post(f"/human-requests/{request['id']}/answer", given(request, answer="Bonn")), 409)
    assert "expired" in late["detail"]


def test_a_blocked_mission_at_its_limit_is_granted_more_with_the_answer(
    api: ApiClient, agent: ConfiguredAgent, model: Model
) -> None:
    execution_id = run(agent, model, BLOCKED, max_iterations=1)
    request = asked(api, execution_id)
    path = f"/human-requests/{request['id']}/answer"
    assert request["items"][0]["proposed"]["needs_grant"] is True
    assert paths(problem_of(api.post(path, given(request, answer="Bonn")), 422)) == ["items[0].grant"]
    assert api.post(path, given(request, answer="Bonn", grant=2)).status_code == 200
    assert api.get(f"/executions/{execution_id}").json()["max_iterations"] == 3


def test_an_agent_of_a_waiting_mission_is_not_deleted(
    api: ApiClient, agent: ConfiguredAgent, model: Model
) -> None:
    execution_id = run(agent, model, WAIT)
    body = problem_of(api.delete(f"/agents/{agent.pk}"), 409)
    assert "used by 1 mission and 1 execution" in body["detail"]
    assert api.get(f"/executions/{execution_id}").json()["loop_status"] == "waiting"


def test_a_mission_whose_agent_class_was_removed_by_a_deploy_is_held_and_says_so(
    api: ApiClient, agent: ConfiguredAgent, model: Model
) -> None:
    model.answers, model.decisions = ["Sorted."], [DONE]
    execution = mission(agent, loop_prompt="Go on.").dispatch()
    with registry.isolated(empty=True):
        claimed = claim(execution.pk)
        assert claimed is not None
        assert run_claimed(claimed) is Outcome.HELD
        body = api.get(f"/executions/{execution.pk}").json()
    assert body["status"] == "in_progress"
    assert "no agent class is registered as 'clerk'" in body["held"]["reason"]
    assert run_until_parked(execution).status == "finished"
    assert api.get(f"/executions/{execution.pk}").json()["held"] is None


def test_a_cancel_ends_a_waiting_mission(api: ApiClient, agent: ConfiguredAgent, model: Model) -> None:
    execution_id = run(agent, model, WAIT)
    assert api.post(f"/executions/{execution_id}/cancel").json()["status"] == "cancelled"
    body = api.get(f"/executions/{execution_id}").json()
    assert (body["loop_status"], body["wait"], body["next_run_at"]) == ("cancelled", None, None)


def test_an_execution_of_somebody_else_does_not_exist(
    other_api: ApiClient, agent: ConfiguredAgent, model: Model
) -> None:
    path = f"/executions/{run(agent, model, WAIT)}"
    for response in (
        other_api.get(f"{path}/iterations"),
        other_api.post(f"{path}/extend", {"iterations": 1}),
        other_api.post(f"{path}/resume"),
        other_api.post(f"{path}/signals/stock", 1),
    ):
        problem_of(response, 404)

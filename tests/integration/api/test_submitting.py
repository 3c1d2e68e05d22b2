"""Submitting: accepted with 202 and a place to follow it, refused without leaving a row, never done twice."""

from typing import Any

import pytest

from agency.models import ConfiguredAgent, Execution, Thread
from tests.integration.api.conftest import ApiClient
from tests.integration.api.test_problems import UNKNOWN, paths, problem_of


def order(agent: ConfiguredAgent, **given: Any) -> dict[str, Any]:
    return {"agent": str(agent.pk), "execution_key": "count-words", "input": {"text": "a b"}} | given


def batch(agent: ConfiguredAgent, *texts: str) -> dict[str, Any]:
    inputs = [{"text": text} for text in texts]
    return {"agent": str(agent.pk), "execution_key": "count-words", "inputs": inputs}


def test_an_order_is_accepted_with_a_place_to_follow_it(api: ApiClient, agent: ConfiguredAgent) -> None:
    response = api.post("/executions", order(agent))
    assert response.status_code == 202
    body = response.json()
    assert response["Location"] == f"/api/executions/{body['id']}"
    assert api.get(f"/executions/{body['id']}").json() == body
    assert body["status"] == "pending"
    assert body["input"] == {"text": "a b", "language": "en"}  # with defaults filled in


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"execution_key": "no-such"}, "execution_key"),
        ({"execution_key": "shelve-books", "input": {}}, "agent"),
        ({"agent": UNKNOWN}, "agent"),
        ({"input": {}}, "input.text"),
        ({"input": {"text": ""}}, "input.text"),
        ({"input": {"text": "a", "tone": "dry"}}, "input.tone"),
        ({"input": {"text": 7}}, "input.text"),
    ],
)
def test_what_does_not_fit_is_named_and_leaves_no_row(
    api: ApiClient, agent: ConfiguredAgent, given: dict[str, Any], path: str
) -> None:
    assert paths(problem_of(api.post("/executions", order(agent) | given), 422)) == [path]
    assert not Execution.objects.exists()
    assert not Thread.objects.exists()


def test_somebody_elses_agent_does_not_exist(other_api: ApiClient, agent: ConfiguredAgent) -> None:
    assert paths(problem_of(other_api.post("/executions", order(agent)), 422)) == ["agent"]


def test_the_same_key_and_body_give_the_same_execution(api: ApiClient, agent: ConfiguredAgent) -> None:
    first = api.post("/executions", order(agent), key="once")
    second = api.post("/executions", order(agent), key="once")
    assert (first.status_code, second.status_code) == (202, 200)
    assert second.json() == first.json()
    assert second["Location"] == first["Location"]
    assert Execution.objects.count() == 1


def test_the_same_key_with_another_body_is_a_conflict(api: ApiClient, agent: ConfiguredAgent) -> None:
    api.post("/executions", order(agent), key="once")
    problem_of(api.post("/executions", order(agent, input={"text": "c"}), key="once"), 409)
    assert Execution.objects.count() == 1


def test_a_key_belongs_to_its_user(
    api: ApiClient, other_api: ApiClient, other_user: Any, agent: ConfiguredAgent
) -> None:
    api.post("/executions", order(agent), key="once")
    theirs = ConfiguredAgent.objects.create(owner=other_user, name="Clerk", agent_key="clerk")
    assert other_api.post("/executions", order(theirs, input={"text": "c"}), key="once").status_code == 202


@pytest.mark.parametrize("key", ["a b", "x" * 181, "\xe9"])
def test_a_key_that_is_no_key_is_refused(api: ApiClient, agent: ConfiguredAgent, key: str) -> None:
    assert paths(problem_of(api.post("/executions", order(agent), key=key), 422)) == ["Idempotency-Key"]


def test_a_batch_is_accepted_in_the_order_of_its_inputs(api: ApiClient, agent: ConfiguredAgent) -> None:
    response = api.post("/executions/batch", batch(agent, "a", "a b", "a b c"))
    assert response.status_code == 202
    body = response.json()
    texts = [api.get(f"/executions/{row['id']}").json()["input"]["text"] for row in body["executions"]]
    assert texts == ["a", "a b", "a b c"]
    listed = api.client.get(response["Location"], headers=api.headers).json()["items"]
    assert {row["id"] for row in listed} == {row["id"] for row in body["executions"]}
    assert {row["batch"] for row in listed} == {body["batch"]}


def test_a_batch_with_faulty_inputs_names_each_and_accepts_none(
    api: ApiClient, agent: ConfiguredAgent
) -> None:
    body = problem_of(api.post("/executions/batch", batch(agent, "a", "", "b", "")), 422)
    assert paths(body) == ["inputs[1].text", "inputs[3].text"]
    assert not Execution.objects.exists()


@pytest.mark.parametrize("size", [0, 1001])
def test_a_batch_has_a_size(api: ApiClient, agent: ConfiguredAgent, size: int) -> None:
    assert paths(problem_of(api.post("/executions/batch", batch(agent, *["a"] * size)), 422)) == ["inputs"]


def test_a_batch_with_the_same_key_is_the_same_batch(api: ApiClient, agent: ConfiguredAgent) -> None:
    first = api.post("/executions/batch", batch(agent, "a", "b"), key="once")
    again = api.post("/executions/batch", batch(agent, "a", "b"), key="once")
    assert (first.status_code, again.status_code) == (202, 200)
    assert again.json() == first.json()
    problem_of(api.post("/executions/batch", batch(agent, "a"), key="once"), 409)
    problem_of(api.post("/executions/batch", batch(agent, "a", "b", "c"), key="once"), 409)
    assert Execution.objects.count() == 2


def test_cancelling_ends_what_nobody_runs_and_may_be_asked_twice(
    api: ApiClient, agent: ConfiguredAgent
) -> None:
    row = api.post("/executions", order(agent)).json()
    for _ in range(2):
        answer = api.post(f"/executions/{row['id']}/cancel").json()
        assert answer == {"id": row["id"], "status": "cancelled", "cancel_requested": True}


def test_cancelling_is_not_possible_by_reading(api: ApiClient, agent: ConfiguredAgent) -> None:
    row = api.post("/executions", order(agent)).json()
    problem_of(api.get(f"/executions/{row['id']}/cancel"), 405)

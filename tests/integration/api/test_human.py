"""`/api/human-requests`: what waits for people, and their answers."""

from collections.abc import Callable
from typing import Any

import pytest

from agency.human.asking import about_input
from agency.models import ConfiguredAgent, Execution, Mission
from tests.integration.api.conftest import ApiClient
from tests.integration.rows import an_ask, waiting_row


@pytest.fixture
def waiting(agent: ConfiguredAgent) -> Execution:
    return waiting_row(agent, an_ask("pay", "mail"))


def decision(item: dict[str, Any], word: str, **more: Any) -> dict[str, Any]:
    return {"call_id": item["call_id"], "digest": item["digest"], "decision": word, **more}


def read(api: ApiClient) -> dict[str, Any]:
    (request,) = api.get("/human-requests", status="open").json()["items"]
    return request


def test_a_request_says_what_is_wanted_and_what_may_be_answered(api: ApiClient, waiting: Execution) -> None:
    request = read(api)
    assert request["message"] == "Clerk wants to call pay(amount=5) and mail(amount=5)."
    assert (request["kind"], request["status"]) == ("confirm_tool", "open")
    assert (request["execution"], request["agent_name"]) == (str(waiting.pk), "Clerk")
    first = request["items"][0]
    assert (first["tool"], first["proposed"], first["decision"]) == ("pay", {"amount": 5}, None)
    assert first["decisions"] == ["approve", "reject"]
    assert first["answer_schema"]["required"] == ["amount"]
    assert api.get(f"/human-requests/{request['id']}").json() == request
    assert api.get(f"/executions/{waiting.pk}").json()["request"] == request


def test_lists_are_narrowed_by_status_kind_and_execution(api: ApiClient, waiting: Execution) -> None:
    for query, found in (
        ({"status": "open", "kind": "confirm_tool", "execution": str(waiting.pk)}, 1),
        ({"status": "answered"}, 0),
        ({"kind": "question"}, 0),
    ):
        assert len(api.get("/human-requests", **query).json()["items"]) == found
    assert api.get("/human-requests", state="open").status_code == 422


def test_an_answer_in_parts_makes_the_execution_due_with_the_last(api: ApiClient, waiting: Execution) -> None:
    request = read(api)
    path = f"/human-requests/{request['id']}/answer"
    pay, mail = request["items"]

    part = api.post(path, {"items": [decision(pay, "approve", arguments={"amount": 3})]})
    assert part.status_code == 200
    assert (part.json()["status"], part.json()["items"][0]["decided_by"]) == ("open", "ada")
    assert part.json()["items"][0]["effective"] == {"amount": 3}
    waiting.refresh_from_db()
    assert waiting.status == "interrupted"

    whole = api.post(path, {"items": [decision(mail, "reject", reason="not now")]})
    assert (whole.status_code, whole.json()["status"]) == (200, "answered")
    waiting.refresh_from_db()
    assert (waiting.status, waiting.next_run_at is not None) == ("in_progress", True)
    assert api.get(f"/executions/{waiting.pk}").json()["request"] is None


def test_who_comes_second_gets_409_with_the_first_answer(api: ApiClient, waiting: Execution) -> None:
    request = read(api)
    path = f"/human-requests/{request['id']}/answer"
    body = {"items": [decision(item, "reject", reason="no") for item in request["items"]]}
    assert api.post(path, body).status_code == 200
    again = api.post(path, body)
    assert again.status_code == 409
    assert again["Content-Type"] == "application/problem+json"
    assert again.json()["detail"] == "The request is answered; this answer came too late."
    assert [item["reason"] for item in again.json()["request"]["items"]] == ["no", "no"]


def test_a_digest_of_something_else_is_a_conflict(api: ApiClient, waiting: Execution) -> None:
    request = read(api)
    item = {**request["items"][0], "digest": "0" * 64}
    refused = api.post(f"/human-requests/{request['id']}/answer", {"items": [decision(item, "approve")]})
    assert (refused.status_code, refused.json()["request"]["status"]) == (409, "open")


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"decision": "approve", "arguments": {"amount": "much"}}, "items[0].arguments.amount"),
        ({"decision": "happened"}, "items[0].decision"),
        ({"decision": "maybe"}, "items[0].decision"),
        ({"call_id": "other"}, "items[0].call_id"),
        ({"by": "somebody else"}, "items[0].by"),
    ],
)
def test_what_does_not_fit_is_named(
    api: ApiClient, waiting: Execution, change: dict[str, Any], path: str
) -> None:
    request = read(api)
    item = decision(request["items"][0], "approve") | change
    refused = api.post(f"/human-requests/{request['id']}/answer", {"items": [item]})
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (422, path)
    assert read(api) == request


def test_a_request_of_somebody_else_does_not_exist(
    api: ApiClient, other_api: ApiClient, waiting: Execution
) -> None:
    request = read(api)
    item = decision(request["items"][0], "approve")
    assert other_api.get("/human-requests").json()["items"] == []
    assert other_api.get(f"/human-requests/{request['id']}").status_code == 404
    assert other_api.post(f"/human-requests/{request['id']}/answer", {"items": [item]}).status_code == 404


def test_requests_are_answered_by_post_only(api: ApiClient, waiting: Execution) -> None:
    assert api.get(f"/human-requests/{read(api)['id']}/answer").status_code == 405


def test_a_list_takes_as_many_queries_however_long_it_is(
    api: ApiClient, agent: ConfiguredAgent, django_assert_max_num_queries: Callable[[int], Any]
) -> None:
    for _ in range(5):
        waiting_row(agent, an_ask("pay", "mail"))
    with django_assert_max_num_queries(8):
        assert len(api.get("/human-requests").json()["items"]) == 5


def test_an_allowance_for_the_whole_execution_is_taken_back(
    api: ApiClient, other_api: ApiClient, waiting: Execution
) -> None:
    request = read(api)
    items = [decision(item, "approve", always=item["tool"] == "pay") for item in request["items"]]
    assert api.post(f"/human-requests/{request['id']}/answer", {"items": items}).status_code == 200
    path = f"/executions/{waiting.pk}/ask-again"
    assert other_api.post(path, {"tool": "pay"}).status_code == 404
    for tool, revoked in (("pay", True), ("pay", False), ("mail", False)):
        assert api.post(path, {"tool": tool}).json() == {"tool": tool, "revoked": revoked}


def test_more_iterations_are_granted_with_the_answer_of_a_mission_that_used_up_its_own(
    api: ApiClient, agent: ConfiguredAgent
) -> None:
    ask = about_input("Which shop?", "text", [], needs_grant=True)
    mission = Mission.objects.create(
        owner=agent.owner, agent=agent, name="Bills", prompt="Pay.", loop_prompt="Go"
    )
    row = waiting_row(
        agent, ask, execution_key=None, mission=mission, loop_status="blocked", iteration=3, max_iterations=3
    )
    request = read(api)
    (item,) = request["items"]
    assert (item["proposed"], item["decisions"]) == (
        {"question": "Which shop?", "needs_grant": True},
        ["answer", "give_up"],
    )
    path = f"/human-requests/{request['id']}/answer"
    for grant, status in ((None, 422), (0, 422), (101, 422), ("2", 422), (2, 200)):
        said = api.post(path, {"items": [decision(item, "answer", answer="Bonn", grant=grant)]})
        assert said.status_code == status
        assert status == 200 or said.json()["errors"][0]["path"] == "items[0].grant"
    row.refresh_from_db()
    assert (row.max_iterations, row.status, row.loop_status) == (5, "in_progress", "running")


def test_a_tool_is_allowed_for_a_mission_by_name(api: ApiClient, agent: ConfiguredAgent) -> None:
    mission = Mission.objects.create(owner=agent.owner, agent=agent, name="Bills", prompt="Pay.")
    waiting_row(agent, an_ask("pay"), execution_key=None, mission=mission)
    request = read(api)
    path, (item,) = f"/human-requests/{request['id']}/answer", request["items"]
    wrong = api.post(path, {"items": [decision(item, "approve", always=True, always_for="team")]})
    assert (wrong.status_code, wrong.json()["errors"][0]["path"]) == (422, "items[0].always_for")
    said = decision(item, "approve", always=True, always_for="mission")
    assert api.post(path, {"items": [said]}).status_code == 200
    mission.refresh_from_db()
    assert mission.always_allow == {"pay": True}

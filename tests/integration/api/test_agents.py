"""Agents: the caller's own, of registered classes, with what each can be asked to do."""

from typing import Any

import pytest

from agency.models import ConfiguredAgent, Mission
from tests.integration.api.conftest import ApiClient
from tests.integration.api.test_problems import paths, problem_of


def test_an_agent_is_created_and_found_where_the_answer_says(api: ApiClient, user: Any) -> None:
    response = api.post("/agents", {"name": "My clerk", "agent_key": "clerk", "model": "openai:gpt-5-mini"})
    assert response.status_code == 201
    assert api.client.get(response["Location"], headers=api.headers).json() == response.json()
    assert ConfiguredAgent.objects.get().owner == user


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"agent_key": "no-such"}, "agent_key"),
        ({"agent_key": ""}, "agent_key"),
        ({"name": ""}, "name"),
        ({"name": "   "}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"model": "gpt"}, "model"),
        ({"model": "openai:"}, "model"),
        ({"model": "no-such-vendor:gpt"}, "model"),
        ({"model": "scripted:os:abort"}, "model"),
        ({"model": "local:/etc/passwd"}, "model"),
        ({"owner": 1}, "owner"),
        ({"prompt_variables": {"office": 7}}, "prompt_variables.office"),
        ({"prompt_variables": {"offise": "x"}}, "prompt_variables.offise"),
        ({"agent_key": "librarian", "prompt_variables": {"office": "x"}}, "prompt_variables.office"),
    ],
)
def test_what_does_not_fit_is_named(api: ApiClient, given: dict[str, Any], path: str) -> None:
    body = {"name": "My clerk", "agent_key": "clerk"} | given
    assert paths(problem_of(api.post("/agents", body), 422)) == [path]
    assert not ConfiguredAgent.objects.exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": "gpt"}, "write provider:model"),
        ({"name": ""}, "name: String should have at least 1 character"),
        ({"name": "a\x00"}, "name contains a NUL character"),
    ],
)
def test_what_does_not_fit_is_said_in_plain_words(api: ApiClient, given: dict[str, Any], said: str) -> None:
    body = problem_of(api.post("/agents", {"name": "My clerk", "agent_key": "clerk"} | given), 422)
    assert said in body["detail"]


def test_two_agents_of_one_owner_have_two_names(api: ApiClient, other_api: ApiClient) -> None:
    body = {"name": "My clerk", "agent_key": "clerk"}
    assert api.post("/agents", body).status_code == 201
    assert paths(problem_of(api.post("/agents", body), 422)) == ["name"]
    assert other_api.post("/agents", body).status_code == 201


def test_a_user_sees_only_their_own(api: ApiClient, other_api: ApiClient, agent: ConfiguredAgent) -> None:
    assert [row["id"] for row in api.get("/agents").json()["items"]] == [str(agent.pk)]
    assert other_api.get("/agents").json()["items"] == []
    problem_of(other_api.get(f"/agents/{agent.pk}"), 404)
    problem_of(other_api.get(f"/agents/{agent.pk}/definitions"), 404)


def test_an_agent_shows_what_it_can_be_asked_with_schema_and_codes(
    api: ApiClient, agent: ConfiguredAgent
) -> None:
    shown = api.get(f"/agents/{agent.pk}/definitions").json()
    assert [each["execution_key"] for each in shown] == ["count-words", "summarise"]
    count = shown[0]
    assert count["name"] == "Count words"
    assert count["description"] == "Counts the words of a text."
    assert count["max_attempts"] == 3
    assert count["input_schema"]["required"] == ["text"]
    assert count["input_schema"]["additionalProperties"] is False
    assert "max_retries_exceeded" in count["failure_codes"]
    assert count["failure_codes"][-1] == "not_a_text"


def test_all_definitions_are_listed(api: ApiClient) -> None:
    keys = {each["execution_key"] for each in api.get("/definitions").json()}
    assert keys >= {"count-words", "summarise", "shelve-books"}


def test_an_agent_that_nothing_uses_is_deleted(
    api: ApiClient, other_api: ApiClient, agent: ConfiguredAgent
) -> None:
    problem_of(other_api.delete(f"/agents/{agent.pk}"), 404)
    assert api.delete(f"/agents/{agent.pk}").status_code == 204
    problem_of(api.get(f"/agents/{agent.pk}"), 404)


def test_an_agent_that_is_used_stays_and_what_uses_it_is_said(api: ApiClient, agent: ConfiguredAgent) -> None:
    mission = Mission.objects.create(owner=agent.owner, agent=agent, name="Orders", prompt="Sort.")
    body = problem_of(api.delete(f"/agents/{agent.pk}"), 409)
    assert body["detail"] == "The agent 'Clerk' is used by 1 mission, which would be lost without it."
    for _ in range(2):
        mission.dispatch()
    assert "used by 1 mission and 2 executions" in api.delete(f"/agents/{agent.pk}").json()["detail"]
    assert ConfiguredAgent.objects.filter(pk=agent.pk).exists()

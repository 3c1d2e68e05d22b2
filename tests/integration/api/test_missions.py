"""`/api/missions`: standing orders are made, changed, removed and dispatched."""

from typing import Any
from uuid import uuid4

import pytest

from agency.mission.completion import BaseCompletionCheck, ClaimedCompletion
from agency.mission.completion import registry as completion
from agency.mission.watches import BaseWatch, Look, View
from agency.mission.watches import registry as watches
from agency.models import ConfiguredAgent, Execution, Mission
from tests.integration.api.conftest import ApiClient
from tests.integration.api.test_problems import paths, problem_of


@pytest.fixture
def order(agent: ConfiguredAgent) -> dict[str, Any]:
    return {"agent": str(agent.pk), "name": "Orders", "prompt": "Sort all orders."}


@pytest.fixture
def mission(agent: ConfiguredAgent) -> Mission:
    return Mission.objects.create(
        owner=agent.owner, agent=agent, name="Orders", prompt="Sort all orders.", loop_prompt="Go on."
    )


def test_a_mission_is_created_with_its_defaults_and_found_where_the_answer_says(
    api: ApiClient, order: dict[str, Any], user: Any
) -> None:
    response = api.post("/missions", order)
    assert response.status_code == 201
    body = response.json()
    assert api.client.get(response["Location"], headers=api.headers).json() == body
    assert body | order == body
    assert (body["loop_prompt"], body["is_loop"], body["archived_at"]) == (None, False, None)
    assert (body["max_iterations"], body["loop_delay_seconds"], body["supervisor_model"]) == (10, 0, "")
    assert (body["completion_checks"], body["limits"]) == ([], {})
    assert Mission.objects.get().owner == user


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"max_iterations": 0}, "max_iterations"),
        ({"max_iterations": 101}, "max_iterations"),
        ({"max_iterations": True}, "max_iterations"),
        ({"max_iterations": "10"}, "max_iterations"),
        ({"loop_delay_seconds": -1}, "loop_delay_seconds"),
        ({"loop_delay_seconds": 86_401}, "loop_delay_seconds"),
        ({"loop_delay_seconds": 0.5}, "loop_delay_seconds"),
        ({"name": " "}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": "\n\t "}, "prompt"),
        ({"prompt": "a\x00b"}, "prompt"),
        ({"prompt": None}, "prompt"),
        ({"loop_prompt": 7}, "loop_prompt"),
        ({"supervisor_model": "gpt"}, "supervisor_model"),
        ({"supervisor_model": "scripted:os:abort"}, "supervisor_model"),
        ({"supervisor_model": "local:/etc/passwd"}, "supervisor_model"),
        ({"completion_checks": "all"}, "completion_checks"),
        ({"completion_checks": ["no-such"]}, "completion_checks[0]"),
        ({"limits": {"tokens": 0}}, "limits.tokens"),
        ({"limits": {"cost": True}}, "limits.cost"),
        ({"limits": {"euros": 5}}, "limits.euros"),
        ({"agent": str(uuid4())}, "agent"),
        ({"agent": "seven"}, "agent"),
        ({"is_loop": True}, "is_loop"),
        ({"mode": "loop"}, "mode"),
    ],
)
def test_what_does_not_fit_is_named_at_creation_and_at_a_change(
    api: ApiClient, order: dict[str, Any], mission: Mission, given: dict[str, Any], path: str
) -> None:
    assert paths(problem_of(api.post("/missions", order | given), 422)) == [path]
    before = Mission.objects.values().get()
    assert paths(problem_of(api.patch(f"/missions/{mission.pk}", given), 422)) == [path]
    assert Mission.objects.values().get() == before


@pytest.mark.parametrize("given", [{"mode": "loop"}, {"mode": None}, {"is_loop": False}])
def test_the_mode_is_no_field_and_the_refusal_says_what_it_follows_from(
    api: ApiClient, order: dict[str, Any], mission: Mission, given: dict[str, Any]
) -> None:
    answers = [api.post("/missions", order | given), api.patch(f"/missions/{mission.pk}", given)]
    for body in (problem_of(answer, 422) for answer in answers):
        (error,) = body["errors"]
        assert [error["path"]] == [*given]
        assert "follows from loop_prompt" in error["message"]
    schemas = api.get("/openapi.json").json()["components"]["schemas"]
    for name in ("MissionOrder", "MissionChange"):
        assert not {"mode", "is_loop"} & schemas[name]["properties"].keys()
        assert schemas[name]["additionalProperties"] is False


def test_all_faults_are_named_at_once(api: ApiClient, order: dict[str, Any]) -> None:
    body = problem_of(api.post("/missions", order | {"max_iterations": 0, "loop_delay_seconds": -1}), 422)
    assert paths(body) == ["max_iterations", "loop_delay_seconds"]


def test_an_agent_of_somebody_else_is_none(
    api: ApiClient, order: dict[str, Any], other_user: Any, mission: Mission
) -> None:
    theirs = ConfiguredAgent.objects.create(owner=other_user, name="Theirs", agent_key="clerk")
    given = {"agent": str(theirs.pk)}
    assert paths(problem_of(api.post("/missions", order | given), 422)) == ["agent"]
    assert paths(problem_of(api.patch(f"/missions/{mission.pk}", given), 422)) == ["agent"]


def test_a_mission_for_an_agent_whose_class_is_gone_is_refused(
    api: ApiClient, order: dict[str, Any], agent: ConfiguredAgent
) -> None:
    ConfiguredAgent.objects.filter(pk=agent.pk).update(agent_key="gone")
    body = problem_of(api.post("/missions", order), 422)
    assert paths(body) == ["agent"]
    assert "'gone' is not registered" in body["detail"]


@pytest.mark.parametrize("blank", ["", "  \n", None])
def test_a_blank_loop_prompt_makes_a_one_shot_mission(
    api: ApiClient, order: dict[str, Any], mission: Mission, blank: str | None
) -> None:
    made = api.post("/missions", order | {"loop_prompt": blank}).json()
    assert (made["loop_prompt"], made["is_loop"]) == (None, False)
    changed = api.patch(f"/missions/{mission.pk}", {"loop_prompt": blank}).json()
    assert (changed["loop_prompt"], changed["is_loop"]) == (None, False)


def test_checks_that_nobody_would_run_are_refused_with_the_fix(
    api: ApiClient, order: dict[str, Any], mission: Mission
) -> None:
    """A one-shot mission has no supervisor, and so no 'complete' to check."""
    fix = "completion checks run after a supervisor's 'complete': add a loop_prompt, or drop them"
    where = f"/missions/{mission.pk}"
    with completion.isolated():
        completion.register(Counted)
        checked = {"completion_checks": ["counted"]}
        for blank in ({}, {"loop_prompt": None}, {"loop_prompt": " "}):
            body = problem_of(api.post("/missions", order | checked | blank), 422)
            assert body["errors"] == [{"path": "completion_checks", "message": fix}]
        assert Mission.objects.count() == 1
        assert api.patch(where, checked).status_code == 200
        assert paths(problem_of(api.patch(where, {"loop_prompt": ""}), 422)) == ["completion_checks"]
        assert api.get(where).json()["is_loop"]
        assert api.patch(where, {"loop_prompt": None, "completion_checks": []}).status_code == 200
        assert paths(problem_of(api.patch(where, checked), 422)) == ["completion_checks"]
        assert api.patch(where, checked | {"loop_prompt": "Go on."}).status_code == 200
        Mission.objects.update(loop_prompt=None)  # one of an older release
        assert api.patch(where, {"name": "Others"}).status_code == 200
        assert paths(problem_of(api.post(f"{where}/dispatch"), 422)) == ["completion_checks"]


BRACES = "{} {0} {iteration!r:>10} {mission_name.__class__} {last_summary[0]} {{iteration}} %s {unknown} }{"


def test_braces_and_format_specs_of_a_loop_prompt_are_text(api: ApiClient, order: dict[str, Any]) -> None:
    made = api.post("/missions", order | {"loop_prompt": BRACES})
    assert (made.status_code, made.json()["loop_prompt"]) == (201, BRACES)


def test_what_is_left_out_of_a_change_stays(api: ApiClient, mission: Mission) -> None:
    before = api.get(f"/missions/{mission.pk}").json()
    after = api.patch(f"/missions/{mission.pk}", {"max_iterations": 3, "name": " New \n name "}).json()
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"max_iterations", "name", "updated_at"}
    assert (after["max_iterations"], after["name"]) == (3, "New name")
    assert api.patch(f"/missions/{mission.pk}", {}).status_code == 200


def test_missions_are_listed_by_page_newest_first_and_by_agent(
    api: ApiClient, mission: Mission, order: dict[str, Any]
) -> None:
    second = api.post("/missions", order).json()["id"]
    page = api.get("/missions", limit=1).json()
    assert [row["id"] for row in page["items"]] == [second]
    rest = api.get("/missions", limit=1, cursor=page["next"]).json()
    assert ([row["id"] for row in rest["items"]], rest["next"]) == ([str(mission.pk)], None)
    assert len(api.get("/missions", agent=order["agent"]).json()["items"]) == 2
    assert api.get("/missions", agent=str(uuid4())).json()["items"] == []
    assert paths(problem_of(api.get("/missions", name="Orders"), 422)) == ["name"]


def test_a_mission_of_somebody_else_does_not_exist(
    api: ApiClient, other_api: ApiClient, mission: Mission
) -> None:
    path = f"/missions/{mission.pk}"
    assert other_api.get("/missions").json()["items"] == []
    problem_of(other_api.get(path), 404)
    problem_of(other_api.patch(path, {"name": "Mine"}), 404)
    problem_of(other_api.delete(path), 404)
    problem_of(other_api.post(f"{path}/dispatch"), 404)
    assert api.get(path).json()["name"] == "Orders"


def test_a_dispatch_is_accepted_with_the_place_to_follow_it(
    api: ApiClient, mission: Mission, user: Any
) -> None:
    response = api.post(f"/missions/{mission.pk}/dispatch")
    assert response.status_code == 202
    body = response.json()
    assert api.client.get(response["Location"], headers=api.headers).json() == body
    assert (body["mission"], body["mission_name"], body["execution_key"]) == (str(mission.pk), "Orders", None)
    assert (body["status"], body["loop_status"], body["max_iterations"]) == ("pending", "running", 10)
    assert (body["iteration"], body["current_iteration"], body["generation"]) == (0, 0, 1)
    assert (body["loop_decision"], body["wait"], body["trigger"]) == (None, None, {"by": "call"})
    assert body["next_run_at"] is not None
    assert Execution.objects.get().owner == user


def test_an_idempotency_key_dispatches_once(api: ApiClient, mission: Mission) -> None:
    path = f"/missions/{mission.pk}/dispatch"
    first, second = api.post(path, key="monday"), api.post(path, key="monday")
    assert (first.status_code, second.status_code) == (202, 200)
    assert first.json()["id"] == second.json()["id"]
    other = Mission.objects.create(owner=mission.owner, agent=mission.agent, name="Other", prompt="Do.")
    problem_of(api.post(f"/missions/{other.pk}/dispatch", key="monday"), 409)


def test_a_change_counts_for_later_dispatches_only(api: ApiClient, mission: Mission) -> None:
    path = f"/missions/{mission.pk}"
    first = api.post(f"{path}/dispatch").json()
    api.patch(path, {"name": "New", "prompt": "Other.", "loop_prompt": None, "max_iterations": 99})
    now = api.get(f"/executions/{first['id']}").json()
    assert (now["mission_name"], now["max_iterations"], now["loop_status"]) == ("Orders", 10, "running")
    row = Execution.objects.get(pk=first["id"])
    assert row.config["mission"]["prompt"] == "Sort all orders."
    assert row.metadata["loop_config"]["loop_prompt"] == "Go on."
    second = api.post(f"{path}/dispatch").json()
    assert (second["mission_name"], second["max_iterations"], second["loop_status"]) == ("New", None, None)


def test_a_dispatch_whose_agent_class_is_gone_says_so(api: ApiClient, mission: Mission) -> None:
    ConfiguredAgent.objects.filter(pk=mission.agent_id).update(agent_key="gone")
    body = problem_of(api.post(f"/missions/{mission.pk}/dispatch"), 422)
    assert paths(body) == ["agent"]
    assert not Execution.objects.exists()


def test_a_mission_without_executions_is_removed_whole(api: ApiClient, mission: Mission) -> None:
    response = api.delete(f"/missions/{mission.pk}")
    assert (response.status_code, response.content) == (204, b"")
    assert not Mission.objects.exists()
    problem_of(api.delete(f"/missions/{mission.pk}"), 404)


def test_a_removed_mission_with_executions_stays_for_them_alone(api: ApiClient, mission: Mission) -> None:
    path = f"/missions/{mission.pk}"
    execution = api.post(f"{path}/dispatch").json()
    schedule = mission.schedules.create(cron="0 8 * * *", next_slot_at="2030-01-01T08:00:00Z")
    for _ in range(2):
        assert api.delete(path).status_code == 204
    assert api.get("/missions").json()["items"] == []
    assert [row["id"] for row in api.get("/missions", archived=True).json()["items"]] == [str(mission.pk)]
    assert api.get(path).json()["archived_at"] is not None
    assert api.get(f"/executions/{execution['id']}").json()["status"] == "pending"
    schedule.refresh_from_db()
    assert (schedule.is_paused, schedule.next_slot_at) == (True, None)
    assert "was removed" in problem_of(api.post(f"{path}/dispatch"), 409)["detail"]
    assert "was removed" in problem_of(api.patch(path, {"name": "New"}), 409)["detail"]
    assert Execution.objects.count() == 1


def test_executions_are_listed_by_mission_and_loop_status(api: ApiClient, mission: Mission) -> None:
    loop = api.post(f"/missions/{mission.pk}/dispatch").json()["id"]
    api.patch(f"/missions/{mission.pk}", {"loop_prompt": None})
    once = api.post(f"/missions/{mission.pk}/dispatch").json()["id"]

    def ids(**query: str) -> set[str]:
        return {row["id"] for row in api.get("/executions", **query).json()["items"]}

    assert ids(mission=str(mission.pk)) == {loop, once}
    assert ids(mission=str(mission.pk), loop_status="running") == {loop}
    assert ids(mission=str(uuid4())) == ids(loop_status="blocked") == set()
    assert paths(problem_of(api.get("/executions", loop_status="stuck"), 422)) == ["loop_status"]


def test_what_was_allowed_for_a_mission_is_shown_and_taken_back(
    api: ApiClient, other_api: ApiClient, mission: Mission
) -> None:
    Mission.objects.filter(pk=mission.pk).update(always_allow={"pay": True, "mail": False})
    assert api.get(f"/missions/{mission.pk}").json()["always_allow"] == ["pay"]
    path = f"/missions/{mission.pk}/ask-again"
    assert other_api.post(path, {"tool": "pay"}).status_code == 404
    for tool, revoked in (("pay", True), ("pay", False), ("mail", False)):
        assert api.post(path, {"tool": tool}).json() == {"tool": tool, "revoked": revoked}
    assert api.get(f"/missions/{mission.pk}").json()["always_allow"] == []


class Counted(BaseCompletionCheck):
    NAME = "counted"
    DESCRIPTION = "Every shelf is counted. "

    def check(self, claimed: ClaimedCompletion) -> str | None:
        return None


class Rung(BaseWatch):
    NAME = "rung"
    DESCRIPTION = "The bell has rung."

    def look(self, view: View, memory: dict[str, Any]) -> Look:
        return Look(True)


def test_what_the_project_has_declared_for_missions_is_listed_and_can_be_named(
    api: ApiClient, order: dict[str, Any], anonymous: ApiClient
) -> None:
    with completion.isolated(), watches.isolated():
        completion.register(Counted)
        watches.register(Rung)
        checks = api.get("/completion-checks").json()
        assert {"name": "counted", "description": "Every shelf is counted."} in checks
        assert {"name": "rung", "description": "The bell has rung."} in api.get("/watches").json()
        made = api.post("/missions", order | {"loop_prompt": "Go on.", "completion_checks": ["counted"]})
        assert (made.status_code, made.json()["completion_checks"]) == (201, ["counted"])
    problem_of(anonymous.get("/watches"), 401)

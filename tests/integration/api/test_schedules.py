"""`/api/missions/{id}/schedules`: missions dispatched by cron, with the next times shown."""

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest

from agency.mission import slots
from agency.models import ConfiguredAgent, Mission, Schedule
from agency.models.clock import Now
from tests.integration.api.conftest import ApiClient
from tests.integration.api.test_problems import paths, problem_of

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture
def mission(agent: ConfiguredAgent) -> Mission:
    return Mission.objects.create(owner=agent.owner, agent=agent, name="Orders", prompt="Sort all orders.")


@pytest.fixture
def path(mission: Mission) -> str:
    return f"/missions/{mission.pk}/schedules"


def made(api: ApiClient, path: str, **fields: Any) -> dict[str, Any]:
    response = api.post(path, {"cron": "30 8 * * *", "time_zone": "Europe/Berlin", **fields})
    assert response.status_code == 201, response.content
    return response.json()


def test_a_schedule_is_created_with_its_next_five_times(api: ApiClient, path: str) -> None:
    response = api.post(path, {"cron": "30 8 * * *", "time_zone": "Europe/Berlin"})
    assert response.status_code == 201
    body = response.json()
    assert api.client.get(response["Location"], headers=api.headers).json() == body
    assert (body["overlap"], body["catch_up"], body["is_paused"]) == ("skip", "run_once", False)
    times = [datetime.fromisoformat(time).astimezone(BERLIN) for time in body["next_times"]]
    assert [(time.hour, time.minute) for time in times] == [(8, 30)] * 5
    assert [b.date() - a.date() for a, b in pairwise(times)] == [timedelta(days=1)] * 4
    assert body["next_slot_at"] == body["next_times"][0]
    assert api.get(path).json() == [body]


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        ({"time_zone": "Europe/Atlantis"}, "time_zone", "Atlantis"),
        ({"time_zone": "../../etc/passwd"}, "time_zone", ""),
        ({"cron": "0 0 31 2 *"}, "cron", ""),
        ({"cron": "61 * * * *"}, "cron", "minute"),
        ({"cron": "often"}, "cron", "five fields"),
        ({"cron": "* * * * * *"}, "cron", "once a minute is the most"),
        ({"cron": "x" * 201}, "cron", ""),
        ({"cron": None}, "cron", ""),
        ({"overlap": "perhaps"}, "overlap", "cancel_previous"),
        ({"catch_up": "all"}, "catch_up", "run_once"),
        ({"every": "day"}, "every", ""),
    ],
)
def test_what_does_not_fit_is_named_at_creation_and_at_a_change(
    api: ApiClient, path: str, given: dict[str, Any], field: str, said: str
) -> None:
    schedule = made(api, path)
    for response in (api.post(path, {"cron": "30 8 * * *"} | given), api.patch(_one(path, schedule), given)):
        body = problem_of(response, 422)
        assert paths(body) == [field]
        assert said in body["detail"]
    assert api.get(path).json() == [schedule]


def test_a_change_plans_anew_and_leaves_the_rest(api: ApiClient, path: str) -> None:
    schedule = made(api, path)
    after = api.patch(_one(path, schedule), {"cron": "0 12 * * *", "overlap": "queue"}).json()
    assert (after["cron"], after["time_zone"], after["overlap"]) == ("0 12 * * *", "Europe/Berlin", "queue")
    assert datetime.fromisoformat(after["next_slot_at"]).astimezone(BERLIN).hour == 12


def test_a_paused_schedule_has_no_next_slot_but_shows_its_times(api: ApiClient, path: str) -> None:
    schedule = made(api, path)
    for _ in range(2):
        paused = api.post(f"{_one(path, schedule)}/pause").json()
        assert (paused["is_paused"], paused["next_slot_at"]) == (True, None)
        assert paused["next_times"] == schedule["next_times"]
    for _ in range(2):
        resumed = api.post(f"{_one(path, schedule)}/resume").json()
        assert (resumed["is_paused"], resumed["next_slot_at"]) == (False, schedule["next_slot_at"])


def test_a_schedule_is_deleted(api: ApiClient, path: str) -> None:
    schedule = made(api, path)
    assert api.delete(_one(path, schedule)).status_code == 204
    problem_of(api.get(_one(path, schedule)), 404)
    assert api.get(path).json() == []


def test_slots_lead_to_what_was_dispatched(api: ApiClient, path: str) -> None:
    schedule = made(api, path)
    Schedule.objects.update(next_slot_at=Now(-30))
    assert slots.run_due() == 1
    (slot,) = api.get(f"{_one(path, schedule)}/slots").json()
    assert slot["outcome"] == "dispatched"
    trigger = api.get(f"/executions/{slot['execution']}").json()["trigger"]
    assert (trigger["by"], trigger["schedule"]) == ("schedule", schedule["id"])


def test_schedules_are_those_of_the_mission_and_of_its_owner(
    api: ApiClient, other_api: ApiClient, path: str, mission: Mission
) -> None:
    schedule = made(api, path)
    other = Mission.objects.create(owner=mission.owner, agent=mission.agent, name="Other", prompt="Do.")
    problem_of(api.get(f"/missions/{other.pk}/schedules/{schedule['id']}"), 404)
    problem_of(api.get(f"{path}/{uuid4()}"), 404)
    for response in (
        other_api.get(path),
        other_api.post(path, {"cron": "* * * * *"}),
        other_api.get(_one(path, schedule)),
        other_api.patch(_one(path, schedule), {"cron": "* * * * *"}),
        other_api.delete(_one(path, schedule)),
        other_api.post(f"{_one(path, schedule)}/pause"),
        other_api.post(f"{_one(path, schedule)}/resume"),
        other_api.get(f"{_one(path, schedule)}/slots"),
    ):
        problem_of(response, 404)


def test_a_removed_mission_takes_no_schedule_and_resumes_none(
    api: ApiClient, path: str, mission: Mission
) -> None:
    schedule = made(api, path)
    api.post(f"/missions/{mission.pk}/dispatch")
    api.delete(f"/missions/{mission.pk}")
    assert api.get(_one(path, schedule)).json()["is_paused"]
    assert "was removed" in problem_of(api.post(path, {"cron": "* * * * *"}), 409)["detail"]
    assert "was removed" in problem_of(api.post(f"{_one(path, schedule)}/resume"), 409)["detail"]


def _one(path: str, schedule: dict[str, Any]) -> str:
    return f"{path}/{schedule['id']}"

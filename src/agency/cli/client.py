"""The service as its HTTP API shows it: a small client for commands that go the way every user goes."""

from typing import Any

import httpx

from agency.errors import AgencyError


class ServiceError(AgencyError):
    """The service refused or did not answer; the message is its own."""


class Conflict(ServiceError):
    """What was asked for does not fit the state in which things are by now."""


class ServiceAway(ServiceError):
    """The service did not answer at all."""


class Client:
    """Calls the API of the service at `url` with a bearer token. Answers are parsed JSON."""

    def __init__(self, url: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=f"{url}/api", headers=headers, timeout=30, trust_env=False)

    def agent_for(self, execution_key: str) -> str:
        """The id of an agent of ours that can do this type; configured now if there is none."""
        types = {each["execution_key"]: each for each in self._call("GET", "/definitions")}
        if execution_key not in types:
            raise ServiceError(f"The service does not know {execution_key}: is its app in AGENCY_APPS?")
        return self.agent_of(types[execution_key]["agent_key"])

    def agent_of(self, agent_key: str) -> str:
        """The id of an agent of ours of this class; configured now if there is none."""
        mine = self._call("GET", "/agents", params={"limit": 200})["items"]
        found = [agent["id"] for agent in mine if agent["agent_key"] == agent_key]
        order = {"name": agent_key.replace("-", " ").capitalize(), "agent_key": agent_key}
        return found[0] if found else self._call("POST", "/agents", json=order)["id"]

    def submit_batch(
        self, agent: str, execution_key: str, inputs: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        order = {"agent": agent, "execution_key": execution_key, "inputs": inputs}
        return self._call("POST", "/executions/batch", json=order)["executions"]

    def execution(self, execution_id: str) -> dict[str, Any]:
        return self._call("GET", f"/executions/{execution_id}")

    def batch(self, batch_id: str) -> list[dict[str, Any]]:
        return self._call("GET", "/executions", params={"batch": batch_id, "limit": 200})["items"]

    def events(self, execution_id: str, after: int) -> dict[str, Any]:
        return self._call("GET", f"/executions/{execution_id}/events", params={"after": after})

    def iterations(self, execution_id: str, after: int) -> dict[str, Any]:
        return self._call("GET", f"/executions/{execution_id}/iterations", params={"after": after})

    def cancel(self, execution_id: str) -> None:
        self._call("POST", f"/executions/{execution_id}/cancel")

    def mission(self, agent: str, order: dict[str, Any]) -> str:
        """The id of the agent's mission of the order's name, as it is ordered now; made if there is none."""
        mine = self._call("GET", "/missions", params={"agent": agent, "limit": 200})["items"]
        found = [mission["id"] for mission in mine if mission["name"] == order["name"]]
        if not found:
            return self._call("POST", "/missions", json={**order, "agent": agent})["id"]
        self._call("PATCH", f"/missions/{found[0]}", json=order)
        return found[0]

    def dispatch(self, mission_id: str) -> dict[str, Any]:
        return self._call("POST", f"/missions/{mission_id}/dispatch")

    def resume(self, execution_id: str) -> None:
        """End a mission's wait now; if it is over already, that is as good."""
        try:
            self._call("POST", f"/executions/{execution_id}/resume")
        except Conflict:
            return

    def answer(self, request: dict[str, Any], decision: str) -> None:
        """The same decision on every call of a human request."""
        items = [
            {"call_id": item["call_id"], "digest": item["digest"], "decision": decision}
            for item in request["items"]
        ]
        self._call("POST", f"/human-requests/{request['id']}/answer", json={"items": items})

    def _call(self, method: str, path: str, **request: Any) -> Any:
        return self._answer(method, path, **request).json()

    def _answer(self, method: str, path: str, **request: Any) -> httpx.Response:
        try:
            answer = self._http.request(method, path, **request)
        except httpx.HTTPError as exc:
            raise ServiceAway(f"The service at {self._http.base_url} does not answer: {exc}.") from exc
        if answer.is_error:
            kind = Conflict if answer.status_code == httpx.codes.CONFLICT else ServiceError
            raise kind(f"The service refused {method} {path}: {_detail(answer)}")
        return answer


def _detail(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError):
        return f"{answer.status_code} {answer.reason_phrase}"

"""The service as its HTTP API shows it: a small client for commands that go the way every user goes."""

from typing import Any

import httpx

from agency.errors import AgencyError


class ServiceError(AgencyError):
    """The service refused or did not answer; the message is its own."""


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
        agent_key = types[execution_key]["agent_key"]
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

    def _call(self, method: str, path: str, **request: Any) -> Any:
        return self._answer(method, path, **request).json()

    def _answer(self, method: str, path: str, **request: Any) -> httpx.Response:
        try:
            answer = self._http.request(method, path, **request)
        except httpx.HTTPError as exc:
            raise ServiceError(f"The service at {self._http.base_url} does not answer: {exc}.") from exc
        if answer.is_error:
            raise ServiceError(f"The service refused {method} {path}: {_detail(answer)}")
        return answer


def _detail(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError):
        return f"{answer.status_code} {answer.reason_phrase}"

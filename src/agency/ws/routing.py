"""The sockets' paths, for a project's `URLRouter`."""

from typing import Any

from django.urls import path, re_path

from agency.ws import executions, missions
from agency.ws.socket import served

websocket_urlpatterns: list[Any] = [
    path("ws/executions/<uuid:execution_id>/", served(executions.follow)),
    path("ws/missions/", served(missions.follow)),
]


async def nowhere(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Refuses what asks for any other path."""
    await receive()
    await send({"type": "websocket.close"})


others: Any = re_path(r"", nowhere)

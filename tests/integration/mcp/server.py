"""A real MCP server for tests: `python server.py` speaks over stdin and stdout, `--http` on a free port.

Over HTTP it prints its URL first and ends when its stdin closes.
"""

import os
import socket
import sys
import threading
from typing import Literal

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ImageContent, TextContent, ToolAnnotations
from pydantic import BaseModel, Field

server = MCPServer("test-server", log_level="ERROR")
calls: list[str] = []


class Weather(BaseModel):
    """What the sky looks like."""

    city: str
    degrees: float


@server.tool()
def add(a: int, b: int = Field(description="the second number", le=100)) -> int:
    """Add two numbers."""
    calls.append("add")
    return a + b


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def weather(city: Literal["Bonn", "Ulm"]) -> Weather:
    """Tell the weather of a city."""
    return Weather(city=city, degrees=21.5)


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def fail(reason: str) -> str:
    """Fail, and say why."""
    raise ToolError(reason)


@server.tool()
def process() -> dict[str, int | str]:
    """Tell the process and how often it was called before."""
    calls.append("process")
    return {"pid": os.getpid(), "calls": len(calls), "secret": os.environ.get("TEST_SECRET", "")}


@server.tool()
def picture() -> list[TextContent | ImageContent]:
    """Draw a picture."""
    return [
        TextContent(type="text", text="a square"),
        ImageContent(type="image", data="AAAA", mime_type="image/png"),
    ]


@server.tool()
async def sleep(seconds: float) -> str:
    """Sleep."""
    await anyio.sleep(seconds)
    return "awake"


@server.tool()
def vanish() -> str:
    """End the process in the middle of a call."""
    os._exit(3)


@server.tool()
def key(context: Context) -> str:
    """Tell the key by which a repeated call is known."""
    return str((context.request_context.meta or {}).get("agency/idempotency-key"))


@server.tool(name="dotted.name/with slash")
def dotted() -> str:
    """A name that providers do not take."""
    return "dotted"


def serve_http() -> None:
    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0))
    app = server.streamable_http_app()
    running = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none"))
    threading.Thread(target=lambda: sys.stdin.read() or setattr(running, "should_exit", True)).start()
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)
    running.run(sockets=[listening])


if __name__ == "__main__":
    serve_http() if "--http" in sys.argv else server.run()

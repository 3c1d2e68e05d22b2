"""One connection to an MCP server: a task on the background loop that lives until the run is over.

The protocol's session must be entered and left by the same task; calls reach it from any thread.
"""

import asyncio
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

from agency.agent import background
from agency.agent.mcp.content import McpToolError, value_of
from agency.agent.mcp.server import McpServer
from agency.agent.text import clean
from agency.errors import ConfigurationError, ToolsUnavailable

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import Tool as Listed

_CLOSE_SECONDS = 15.0
_HTTP_SECONDS = 30.0
_STREAM_SECONDS = 300.0
_LAST_WORDS = 600


class Connection:
    """Open it, call, close it. What a started server wrote to `stderr` says why it could not be opened."""

    def __init__(self, server: McpServer, stderr: IO[str]) -> None:
        self.server = server
        self._stderr = stderr
        self._client: Client | None = None
        self._over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def open(self) -> "list[Listed]":
        """Connect and list the tools; raises `ToolsUnavailable` with the reason."""
        try:
            import mcp
        except ImportError as exc:
            raise ConfigurationError(
                "tools of MCP servers need a package that is not installed: run "
                f"`pip install 'agency-django[mcp]'` ({exc})"
            ) from exc
        seconds = self.server.connect_timeout
        try:
            return background.run(self._open(mcp.Client), timeout=seconds)
        except TimeoutError:
            raise self._unavailable(f"it did not answer within {seconds:g} seconds") from None
        except ConnectionError as exc:
            raise self._unavailable(str(exc)) from exc.__cause__

    async def call(self, tool: str, arguments: dict[str, Any], idempotency_key: str) -> Any:
        """The result of one call, on the background loop; `McpToolError` if there is none."""
        from mcp import MCPError

        if self._client is None:
            raise McpToolError(f"the connection to the MCP server {self.server.name!r} is closed")
        try:
            result = await self._client.call_tool(
                tool, arguments, meta={"agency/idempotency-key": idempotency_key}
            )
        except MCPError as exc:
            raise McpToolError(f"the MCP server {self.server.name!r} did not answer: {exc}") from exc
        return value_of(result)

    def close(self) -> None:
        """End the connection, and the process that was started for it; also of a run that was cancelled."""
        if self._task is not None:
            background.run(self._close(self._task), cancelled=lambda: False)

    async def _open(self, client: "type[Client]") -> "list[Listed]":
        ready: asyncio.Future[list[Listed]] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live(client, ready))
        try:
            return await ready
        except asyncio.CancelledError:
            self._task.cancel()
            raise

    async def _live(self, client: "type[Client]", ready: "asyncio.Future[list[Listed]]") -> None:
        try:
            async with AsyncExitStack() as stack:
                transport = await self._transport(stack)
                self._client = await stack.enter_async_context(client(transport, cache=None))
                ready.set_result(await _listing(self._client))
                await self._over.wait()
        except (Exception, asyncio.CancelledError) as exc:
            # Once the tools are listed nobody waits here: whoever calls next is told by the client.
            if not ready.done():
                failed = ConnectionError(self._reason(exc))
                failed.__cause__ = exc
                ready.set_exception(failed)
        finally:
            self._client = None

    async def _transport(self, stack: AsyncExitStack) -> AbstractAsyncContextManager[Any]:
        import httpx2
        from mcp.client.stdio import StdioServerParameters, stdio_client
        from mcp.client.streamable_http import streamable_http_client

        server = self.server
        if server.url is not None:
            timeout = httpx2.Timeout(_HTTP_SECONDS, read=_STREAM_SECONDS)
            client = httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout)
            return streamable_http_client(server.url, http_client=await stack.enter_async_context(client))
        program, *arguments = server.command
        started = StdioServerParameters(command=program, args=arguments, env=dict(server.env), cwd=server.cwd)
        return stdio_client(started, errlog=cast("TextIO", self._stderr))

    async def _close(self, task: "asyncio.Task[None]") -> None:
        self._over.set()
        _, hanging = await asyncio.wait([task], timeout=_CLOSE_SECONDS)
        for one in hanging:
            one.cancel()

    def _reason(self, error: BaseException) -> str:
        cause = _first(error)
        if isinstance(cause, FileNotFoundError) and self.server.command:
            where = "" if self.server.cwd is None else f" in {self.server.cwd}"
            return f"there is no {self.server.command[0]}{where}"
        return f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__

    def _unavailable(self, reason: str) -> ToolsUnavailable:
        self._stderr.seek(0)
        words = clean(self._stderr.read()[-_LAST_WORDS:]).strip()
        said = f". Its last words: {words}" if words else ""
        return ToolsUnavailable(f"the MCP server {self.server.name!r} cannot be used: {reason}{said}")


async def _listing(client: "Client") -> "list[Listed]":
    page = await client.list_tools()
    tools = list(page.tools)
    while page.next_cursor:
        page = await client.list_tools(cursor=page.next_cursor)
        tools += page.tools
    return tools


def _first(error: BaseException) -> BaseException:
    """The first cause, out of the groups that task groups wrap it in."""
    if isinstance(error, BaseExceptionGroup):
        return _first(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    return error

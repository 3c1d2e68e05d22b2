"""From what an MCP server lists to the tools of an agent: which, under what names, with what effects."""

import hashlib
import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from agency.agent.injection import ToolCallInfo
from agency.agent.mcp.arguments import parameters
from agency.agent.mcp.server import McpServer
from agency.agent.tools import Conduct, Tool
from agency.enums import Effect
from agency.errors import ToolsUnavailable

if TYPE_CHECKING:
    from mcp.types import Tool as Listed

Call = Callable[[str, dict[str, Any], str], Awaitable[Any]]
_LONGEST_NAME = 64
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")


def offered(server: McpServer, listed: "Sequence[Listed]", call: Call) -> list[Tool]:
    """The tools of `server` that it is declared to give; a name that it does not have is an error."""
    names = [one.name for one in listed]
    confirm = () if isinstance(server.confirm, bool) else server.confirm
    for wanted in (server.only or (), server.effects, confirm):
        _check_known(server, wanted, names)
    return [_tool(server, one, call) for one in listed if server.only is None or one.name in server.only]


def full_name(server: str, tool: str) -> str:
    """`server__tool` in the letters that every provider takes; a long one is cut and keeps a digest."""
    name = _FOREIGN.sub("_", f"{server}__{tool}")
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - 9]}_{hashlib.sha256(tool.encode()).hexdigest()[:8]}"


def _check_known(server: McpServer, wanted: Collection[str], names: list[str]) -> None:
    missing = [name for name in wanted if name not in names]
    if missing:
        raise ToolsUnavailable(
            f"the MCP server {server.name!r} has no tool {missing[0]!r}; it has {', '.join(names) or 'none'}"
        )


def _tool(server: McpServer, listed: "Listed", call: Call) -> Tool:
    async def function(arguments: dict[str, Any], info: ToolCallInfo) -> Any:
        return await call(listed.name, arguments, info.idempotency_key)

    conduct = Conduct(
        effect=_effect(server, listed),
        requires_confirmation=server.confirm if isinstance(server.confirm, bool) else _in(server, listed),
        timeout=server.timeout,
    )
    name = full_name(server.name, listed.name)
    return Tool(function, name, listed.description or "", parameters(server, listed), conduct)


def _in(server: McpServer, listed: "Listed") -> bool:
    return not isinstance(server.confirm, bool) and listed.name in server.confirm


def _effect(server: McpServer, listed: "Listed") -> Effect:
    if listed.name in server.effects:
        return Effect(server.effects[listed.name])
    hints = listed.annotations if server.trust_hints else None
    if hints is not None and hints.read_only_hint:
        return Effect.READ
    return Effect.IDEMPOTENT if hints is not None and hints.idempotent_hint else Effect.UNSAFE

"""An MCP server as an agent declares it: where it is, and how its tools may be used."""

import re
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from urllib.parse import urlsplit

from agency.agent.tool_schema import ToolDefinitionError
from agency.agent.tools import Tool
from agency.enums import Effect

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*(_[a-zA-Z0-9-]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """A server whose tools an agent gets: `tools=[McpServer(name="files", command=["files-server", "."])]`.

    Give `command` (the server is started, with `env` added to a minimal environment, in `cwd`) or `url`
    (streamable HTTP, with `headers`). The tools are offered as `name__tool`. Each run of an agent has one
    connection of its own to the server.

    `only`: the tools to offer (default: all). `effects`: per tool `read`, `idempotent` or `unsafe`, the
    default; with `trust_hints` the server's own hints are the default. `confirm`: the tools whose calls a
    person must agree to; `True` for all. Tools go by the names that the server gives them.
    `timeout` of one call and `connect_timeout` are in seconds.
    """

    name: str
    command: Sequence[str] = ()
    url: str | None = None
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    only: Collection[str] | None = None
    effects: Mapping[str, Effect | str] = field(default_factory=dict[str, Effect | str])
    trust_hints: bool = False
    confirm: bool | Collection[str] = False
    timeout: float = 60.0
    connect_timeout: float = 30.0

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise ToolDefinitionError(f"MCP server {self.name!r}: {problem}")

    def _problems(self) -> Iterator[str]:
        if not _NAME.fullmatch(self.name) or len(self.name) > 32:
            yield "a name is 1 to 32 letters, digits, '-' and single '_' and starts with a letter"
        if isinstance(self.command, str):
            yield f"command is {self.command!r}; give a list: the program, then its arguments"
        if bool(self.command) == bool(self.url):
            yield "give either command=[...] or url=..."
        if self.url and urlsplit(self.url).scheme not in {"http", "https"}:
            yield f"url is {self.url!r}; it starts with http:// or https://"
        if isinstance(self.only, str) or isinstance(self.confirm, str):
            yield "only and confirm take a list of tool names"
        for tool, effect in self.effects.items():
            if effect not in list(Effect):
                yield f"effects[{tool!r}] is {effect!r}; use one of {', '.join(Effect)}"
        for name, seconds in {"timeout": self.timeout, "connect_timeout": self.connect_timeout}.items():
            if seconds <= 0:
                yield f"{name} is {seconds!r}; give seconds above 0"

    @contextmanager
    def connected(self) -> Generator[list[Tool]]:
        """The server's tools over one connection, which is closed (and the process ended) after the block."""
        from agency.agent.mcp.connection import Connection
        from agency.agent.mcp.offer import offered

        with TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr:
            connection = Connection(self, stderr)
            try:
                yield offered(self, connection.open(), connection.call)
            finally:
                connection.close()

"""Tools of MCP servers: processes that speak over stdin and stdout, or services over streamable HTTP.

The protocol is the `mcp` package's (the extra `agency-django[mcp]`), which is loaded at the first connection.
"""

from agency.agent.mcp.content import McpToolError
from agency.agent.mcp.server import McpServer

__all__ = ["McpServer", "McpToolError"]

"""What a tool of an MCP server answered, as the value that the model is shown."""

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock


class McpToolError(Exception):
    """The server says that the call failed, or did not answer it; the message is meant for the model."""


def value_of(result: "CallToolResult") -> Any:
    """Structured content where there is some, else text; raises `McpToolError` if the call failed."""
    if result.is_error:
        raise McpToolError(text_of(result.content) or "the server gives no reason")
    structured: Any = result.structured_content
    if structured is None:
        return text_of(result.content)
    # Servers wrap what is no object, since older protocols know structured objects only.
    if isinstance(structured, dict) and [*cast("dict[str, Any]", structured)] == ["result"]:
        return cast("dict[str, Any]", structured)["result"]
    return cast("Any", structured)


def text_of(content: "list[ContentBlock]") -> str:
    """The texts of an answer; what is not text is named with its type and size."""
    return "\n".join(_text(block) for block in content)


def _text(block: "ContentBlock") -> str:
    if block.type == "text":
        return block.text
    if block.type == "resource_link":
        return f"[{block.name}: {block.uri}]"
    if block.type == "resource":
        text = getattr(block.resource, "text", None)
        return f"[resource {block.resource.uri}, not shown]" if text is None else text
    return f"[{block.type} {block.mime_type}, {len(block.data) * 3 // 4:,} bytes, not shown]"

"""What can be said of MCP servers without one: declarations, names, schemas, contents."""

from collections.abc import Mapping
from typing import Any

import pytest
from mcp.types import (
    CallToolResult,
    EmbeddedResource,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from mcp.types import Tool as Listed
from pydantic import ValidationError

from agency.agent import Effect, McpServer, McpToolError, Tool, ToolDefinitionError, ToolsUnavailable
from agency.agent.mcp.content import value_of
from agency.agent.mcp.offer import full_name, offered
from agency.agent.tool_schema import explain


async def answer(tool: str, arguments: Mapping[str, Any], key: str) -> Any:
    return tool


def offer(*listed: Listed, **options: Any) -> list[Tool]:
    return offered(McpServer(name="files", command=["serve"], **options), listed, answer)


def listed(name: str = "read", schema: dict[str, Any] | None = None, **hints: bool) -> Listed:
    annotations = ToolAnnotations(**hints) if hints else None
    return Listed(name=name, input_schema=schema or {"type": "object"}, annotations=annotations)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"name": "a b", "command": ["x"]}, "a name is"),
        ({"name": "a__b", "command": ["x"]}, "a name is"),
        ({"name": "a", "command": "serve files"}, "give a list"),
        ({"name": "a"}, "either command"),
        ({"name": "a", "command": ["x"], "url": "http://x"}, "either command"),
        ({"name": "a", "url": "ftp://x"}, "starts with http"),
        ({"name": "a", "command": ["x"], "only": "read"}, "list of tool names"),
        ({"name": "a", "command": ["x"], "effects": {"read": "harmless"}}, "'harmless'; use one of"),
        ({"name": "a", "command": ["x"], "timeout": 0}, "timeout is 0"),
    ],
)
def test_a_wrong_declaration_names_the_field_and_the_fix(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ToolDefinitionError, match=problem):
        McpServer(**options)


def test_secrets_are_not_shown_with_the_server() -> None:
    server = McpServer(name="a", url="https://x", headers={"Authorization": "s3cret"}, env={"K": "s3cret"})
    assert "s3cret" not in repr(server)


def test_names_are_those_of_the_server_in_letters_that_providers_take() -> None:
    assert full_name("files", "read") == "files__read"
    assert full_name("files", "a.b/c d") == "files__a_b_c_d"
    long, other = full_name("files", "x" * 200), full_name("files", "x" * 201)
    assert len(long) == len(other) == 64
    assert long != other


def test_only_the_named_tools_are_offered() -> None:
    tools = offer(listed("read"), listed("write"), only=["write"])
    assert [tool.name for tool in tools] == ["files__write"]


@pytest.mark.parametrize("option", [{"only": ["reed"]}, {"confirm": ["reed"]}, {"effects": {"reed": "read"}}])
def test_a_tool_that_the_server_does_not_have_is_named_with_those_it_has(option: dict[str, Any]) -> None:
    with pytest.raises(ToolsUnavailable, match=r"has no tool 'reed'; it has read, write"):
        offer(listed("read"), listed("write"), **option)


def test_a_hint_about_effects_counts_only_where_it_is_trusted() -> None:
    tools = [listed("a", read_only_hint=True), listed("b", idempotent_hint=True), listed("c")]
    assert [tool.effect for tool in offer(*tools)] == [Effect.UNSAFE] * 3
    assert [tool.effect for tool in offer(*tools, trust_hints=True)] == [
        Effect.READ, Effect.IDEMPOTENT, Effect.UNSAFE,
    ]  # fmt: skip
    assert offer(*tools, trust_hints=True, effects={"a": "unsafe"})[0].effect is Effect.UNSAFE


def test_confirmation_can_be_asked_for_some_tools_or_for_all() -> None:
    tools = [listed("read"), listed("write")]
    assert [tool.needs_confirmation({}) for tool in offer(*tools, confirm=["write"])] == [False, True]
    assert [tool.needs_confirmation({}) for tool in offer(*tools, confirm=True)] == [True, True]


def test_wrong_arguments_are_named_field_by_field() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"a": {"type": "integer"}, "deep": {"type": "array", "items": {"enum": ["x"]}}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    (tool,) = offer(listed(schema=schema))
    assert "$schema" not in tool.spec.parameters

    with pytest.raises(ValidationError) as caught:
        tool.parameters.validate({"a": "one", "deep": ["x", "y"], "c": 1})

    told = explain(caught.value)
    assert "b: Field required" in told
    assert "a: 'one' is not of type 'integer'" in told
    assert "deep.1: 'y' is not one of ['x']" in told
    assert "'c' was unexpected" in told


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/never-fetched.json"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}},
    ],
)
def test_a_schema_that_only_its_server_can_read_is_left_to_the_server(schema: dict[str, Any]) -> None:
    (tool,) = offer(listed(schema=schema))
    assert tool.parameters.validate({"a": 1}) == {"arguments": {"a": 1}}


def test_a_broken_schema_is_refused_with_the_way_out() -> None:
    broken = listed("odd", {"type": "object", "properties": {"a": {"type": "no-such-type"}}})
    with pytest.raises(ToolsUnavailable, match=r"'odd' by a broken JSON Schema .*only=\[...\]"):
        offer(broken)
    assert offer(broken, listed("read"), only=["read"])[0].name == "files__read"


def text(value: str) -> TextContent:
    return TextContent(type="text", text=value)


@pytest.mark.parametrize(
    ("structured", "value"),
    [
        (None, "one\ntwo"),
        ({"a": 1}, {"a": 1}),
        ({"result": [1]}, [1]),
        ({"result": 1, "b": 2}, {"result": 1, "b": 2}),
    ],
)
def test_structured_content_is_preferred_and_unwrapped(structured: Any, value: Any) -> None:
    result = CallToolResult(content=[text("one"), text("two")], structured_content=structured)
    assert value_of(result) == value


def test_resources_are_shown_as_text_or_named() -> None:
    found = TextResourceContents(uri="file:///a", text="inside")
    link = ResourceLink(type="resource_link", name="report", uri="file:///b")
    result = CallToolResult(content=[EmbeddedResource(type="resource", resource=found), link])
    assert value_of(result) == "inside\n[report: file:///b]"


def test_a_failed_call_raises_what_the_server_said() -> None:
    with pytest.raises(McpToolError, match="no such file"):
        value_of(CallToolResult(content=[text("no such file")], is_error=True))
    with pytest.raises(McpToolError, match="gives no reason"):
        value_of(CallToolResult(content=[], is_error=True))

"""Drives tools with a small model by one JSON Schema per answer: a call of an open tool, or the final answer.

Small models write tool calls as text and ask the same thing again and again; so a call that was answered
leaves the choices, and the last step offers only the final answer. Pure: builds and reads messages.
"""

import json
import re
import uuid
from dataclasses import dataclass
from typing import Any, cast

from agency.agent.events import ContentItem, Message, ToolCall, ToolResult
from agency.agent.llm import LlmRequest, ToolSpec, strip_fence
from agency.agent.providers.json_schema import Schema, describe, describe_properties, flatten

FINAL = "final_answer"
_CUT_CALL = re.compile(r'\s*\{\s*"tool"\s*:\s*"(?P<name>[^"]+)"')
_CUT_TEXT = re.compile(rf'\s*\{{\s*"{FINAL}"\s*:\s*"(?P<text>(?:[^"\\]|\\.)*\\?)$', re.DOTALL)
_ANY_FINAL: Schema = {"anyOf": [{"type": "string"}, {"type": "object"}]}
SHAPE_SHOWN = "shape_shown"
"""A setting: examples show the answer's shape, so that it is not described in the system's words too."""
_MARKS = re.compile(r"<(?=\||/?s>|(?:start|end)_of_turn>)|\[(?=/?INST\])")
"""How the marks begin with which chat templates part the speakers."""
_PROTOCOL = f"""Work in steps. Every answer is one JSON object and nothing else.
First call the tools that help, one at a time, each of them once:
{{"tool": "<name>", "arguments": {{...}}}}
When their results are there, finish with:
{{"{FINAL}": %s}}"""


@dataclass(frozen=True, slots=True)
class Choices:
    """What the model may say next."""

    tools: list[ToolSpec]
    final: bool


def choices(request: LlmRequest, banned: frozenset[str] = frozenset()) -> Choices:
    """The tools that are still open in this turn, and whether the final answer is.

    A tool leaves after `calls_per_tool` good results (a setting, default 1) or two errors, or when it
    is `banned` because the model only repeats itself.
    """
    if request.tool_choice == "none":
        return Choices([], True)
    allowed = int(request.settings.get("calls_per_tool", 1))
    good, bad = _answered(request.contents)
    tools = [
        tool
        for tool in request.tools
        if tool.name not in banned and good.get(tool.name, 0) < allowed and bad.get(tool.name, 0) < 2
    ]
    return Choices(tools, request.tool_choice != "required" or not tools)


def _answered(contents: list[ContentItem]) -> tuple[dict[str, int], dict[str, int]]:
    good: dict[str, int] = {}
    bad: dict[str, int] = {}
    for item in _turn(contents):
        if isinstance(item, ToolResult):
            count = good if item.status == "success" else bad
            count[item.name] = count.get(item.name, 0) + 1
    return good, bad


def _turn(contents: list[ContentItem]) -> list[ContentItem]:
    """What came after the newest user message."""
    for at in range(len(contents) - 1, -1, -1):
        item = contents[at]
        if isinstance(item, Message) and item.role == "user":
            return contents[at + 1 :]
    return contents


def repeats(call: ToolCall, contents: list[ContentItem]) -> bool:
    """Whether this very call, same tool and arguments, was made in this turn before."""
    return any(
        isinstance(item, ToolCall) and (item.name, item.arguments) == (call.name, call.arguments)
        for item in _turn(contents)
    )


def response_schema(request: LlmRequest, open_: Choices) -> Schema | None:
    """The schema that the answer must have; `None` for free text."""
    final = flatten(request.output_schema.schema) if request.output_schema else None
    if not request.tools:
        return final
    branches = [_call_schema(tool) for tool in open_.tools]
    if open_.final:
        branches.append(_object({FINAL: final or _ANY_FINAL}))
    return branches[0] if len(branches) == 1 else {"oneOf": branches}


def _call_schema(tool: ToolSpec) -> Schema:
    arguments = flatten(tool.parameters)
    arguments.setdefault("type", "object")
    arguments.setdefault("properties", {})
    arguments["additionalProperties"] = False
    return _object({"tool": {"const": tool.name}, "arguments": arguments})


def _object(properties: dict[str, Schema]) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def messages(request: LlmRequest, open_: Choices) -> list[dict[str, str]]:
    """The chat to send. Its beginning is the same at every step of a turn, so the server's cache holds.

    The server reads a template's own marks wherever they stand, so that a tool's result could speak in the
    system's name; they are broken up.
    """
    chat = [{"role": "system", "content": text}] if (text := _system(request)) else []
    for item in request.contents:
        if turn := _rendered(item, request):
            turn["content"] = _MARKS.sub(lambda mark: f"{mark[0]} ", turn["content"])
            if chat and chat[-1]["role"] == turn["role"] == "user":
                chat[-1] = {"role": "user", "content": f"{chat[-1]['content']}\n\n{turn['content']}"}
            else:
                chat.append(turn)
    if request.tools and not open_.tools and chat and chat[-1]["role"] == "user":
        hint = f'Now give the final answer: {{"{FINAL}": ...}}'
        chat[-1] = {"role": "user", "content": f"{chat[-1]['content']}\n\n{hint}"}
    return chat


def _system(request: LlmRequest) -> str:
    parts = list(request.instructions)
    wanted = None if request.settings.get(SHAPE_SHOWN) else request.output_schema
    shape = describe(wanted.schema) if wanted else None
    if request.tools:
        parts.append("Tools:\n" + "\n".join(_tool_line(tool) for tool in request.tools))
        parts.append(_PROTOCOL % (shape or "..."))
    elif shape:
        parts.append(f"Answer with one JSON object and nothing else: {shape}")
    return "\n\n".join(part for part in parts if part)


def _tool_line(tool: ToolSpec) -> str:
    summary = " ".join(tool.description.split())
    return f"- {tool.name}: {summary} Arguments: {{{describe_properties(tool.parameters)}}}"


def _rendered(item: ContentItem, request: LlmRequest) -> dict[str, str] | None:
    if isinstance(item, ToolCall):
        return {"role": "assistant", "content": _compact({"tool": item.name, "arguments": item.arguments})}
    if isinstance(item, ToolResult):
        word = "Result" if item.status == "success" else "Error"
        text = item.content if isinstance(item.content, str) else _compact(item.content)
        return {"role": "user", "content": f"{word} of {item.name}: {text}"}
    if isinstance(item, Message):
        text = item.content
        if item.role == "assistant" and request.tools:
            text = _compact({FINAL: _loads(text)})
        return {"role": item.role, "content": text}
    return None


def parse(text: str, request: LlmRequest) -> list[ContentItem]:
    """What the model said, as content: one tool call or one message."""
    value = _loads(strip_fence(text))
    if not request.tools or not isinstance(value, dict):
        return [Message(role="assistant", content=text)]
    answer = cast("dict[str, Any]", value)
    if call := _as_call(answer, request):
        return [call]
    if FINAL not in answer:
        return [Message(role="assistant", content=text)]
    final = answer[FINAL]
    inner = _loads(strip_fence(final)) if isinstance(final, str) else final
    if isinstance(inner, dict) and (call := _as_call(cast("dict[str, Any]", inner), request)):
        return [call]
    return [Message(role="assistant", content=final if isinstance(final, str) else _compact(final))]


def parse_cut(text: str, request: LlmRequest) -> list[ContentItem]:
    """What a cut answer was going to be: a call that cannot be run, or the beginning of a text."""
    if (begun := _CUT_CALL.match(text)) and begun["name"] in {tool.name for tool in request.tools}:
        return [ToolCall(tool_call_id=_call_id(), name=begun["name"], invalid=text)]
    if request.tools and (begun := _CUT_TEXT.match(text)):
        quoted = f'"{begun["text"].rstrip(chr(92))}"'
        read = _loads(quoted)
        text = begun["text"] if read == quoted else read
    return [Message(role="assistant", content=text)]


def _as_call(value: dict[str, Any], request: LlmRequest) -> ToolCall | None:
    """A call in our words or in the bare `{"name", "arguments"}` that these models learned."""
    name = value.get("tool", value.get("name"))
    arguments = value.get("arguments")
    if request.tool_choice == "none" or not isinstance(arguments, dict):
        return None
    if name not in {tool.name for tool in request.tools}:
        return None
    return ToolCall(tool_call_id=_call_id(), name=str(name), arguments=cast("dict[str, Any]", arguments))


def _call_id() -> str:
    return f"call_{uuid.uuid4().hex[:16]}"


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)

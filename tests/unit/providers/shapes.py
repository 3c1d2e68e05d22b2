"""The request bodies that OpenAI and Anthropic publish, as JSON Schemas of what agency uses of them.

`chat`, `responses` and `messages` check a body: its shape, and what no schema can say, that each call of a
tool is answered exactly once, and where the API wants it.
"""

import json
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from jsonschema import Draft202012Validator

Body = dict[str, Any]
TEXT = {"type": "string", "minLength": 1}
OBJECT = {"type": "object"}
SCHEMA = {"type": "object", "properties": {"type": {"const": "object"}}, "required": ["type", "properties"]}
TOOL_NAME = {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,64}$"}


def closed(required: str, optional: str = "", **properties: Any) -> Body:
    """An object with these properties and no others; what is not described may be anything."""
    names = [*required.split(), *optional.split(), *properties]
    return {
        "type": "object",
        "properties": {name: properties.get(name, True) for name in names},
        "required": required.split(),
        "additionalProperties": False,
    }


def several(items: Any) -> Body:
    return {"type": "array", "minItems": 1, "items": items}


NAMED_SCHEMA = {"name": TOOL_NAME, "description": TEXT, "strict": {"type": "boolean"}}

CHAT = closed(
    "model messages",
    model=TEXT,
    messages=several(
        {
            "oneOf": [
                closed("role content", role={"enum": ["system", "developer", "user"]}, content=TEXT),
                closed(
                    "role",
                    role={"const": "assistant"},
                    content={"type": ["string", "null"]},
                    tool_calls=several(
                        closed(
                            "id type function",
                            id=TEXT,
                            type={"const": "function"},
                            function=closed("name arguments", name=TOOL_NAME, arguments={"type": "string"}),
                        )
                    ),
                ),
                closed("role tool_call_id content", role={"const": "tool"}, tool_call_id=TEXT, content=TEXT),
            ]
        }
    ),
    tools=several(
        closed(
            "type function",
            type={"const": "function"},
            function=closed("name", **NAMED_SCHEMA, parameters=SCHEMA),
        )
    ),
    tool_choice={"enum": ["auto", "none", "required"]},
    response_format=closed(
        "type json_schema",
        type={"const": "json_schema"},
        json_schema=closed("name schema", **NAMED_SCHEMA, schema=SCHEMA),
    ),
    max_completion_tokens={"type": "integer"},
    temperature={"type": "number"},
    stream={"const": False},
)

RESPONSES = closed(
    "model input",
    model=TEXT,
    instructions=TEXT,
    input=several(
        {
            "oneOf": [
                closed("role content", role={"enum": ["user", "assistant"]}, content=TEXT),
                closed(
                    "type role content",
                    type={"const": "message"},
                    id={"type": "string", "pattern": "^msg_"},
                    status={"const": "completed"},
                    role={"const": "assistant"},
                    content=several(
                        closed("type text annotations", type={"const": "output_text"}, text=TEXT)
                    ),
                ),
                closed(
                    "type id summary",
                    "encrypted_content",
                    type={"const": "reasoning"},
                    id={"type": "string", "pattern": "^rs_"},
                    summary={"type": "array"},
                ),
                closed(
                    "type call_id name arguments",
                    type={"const": "function_call"},
                    id={"type": "string", "pattern": "^fc_"},
                    call_id=TEXT,
                    name=TOOL_NAME,
                    arguments={"type": "string"},
                ),
                closed(
                    "type call_id output", type={"const": "function_call_output"}, call_id=TEXT, output=TEXT
                ),
            ]
        }
    ),
    tools=several(
        closed("type name parameters", type={"const": "function"}, **NAMED_SCHEMA, parameters=SCHEMA)
    ),
    tool_choice={"enum": ["auto", "none", "required"]},
    text=closed(
        "format",
        format=closed("type name schema", type={"const": "json_schema"}, **NAMED_SCHEMA, schema=SCHEMA),
    ),
    include={"type": "array", "items": {"enum": ["reasoning.encrypted_content"]}},
    reasoning=closed("", "effort summary context"),
    max_output_tokens={"type": "integer"},
    temperature={"type": "number"},
    stream={"const": False},
)

_TEXT_BLOCK = closed("type text", type={"const": "text"}, text=TEXT)
_ASSISTANT_BLOCK = {
    "oneOf": [
        _TEXT_BLOCK,
        closed("type thinking signature", type={"const": "thinking"}, thinking=TEXT, signature=TEXT),
        closed(
            "type id name input",
            type={"const": "tool_use"},
            id=TEXT,
            name=TOOL_NAME,
            input={"type": "object"},
        ),
    ]
}
_USER_BLOCK = {
    "oneOf": [
        _TEXT_BLOCK,
        closed(
            "type tool_use_id content",
            type={"const": "tool_result"},
            tool_use_id=TEXT,
            content={"anyOf": [TEXT, several(_TEXT_BLOCK)]},
            is_error={"type": "boolean"},
        ),
    ]
}

MESSAGES = closed(
    "model max_tokens messages",
    model=TEXT,
    max_tokens={"type": "integer", "minimum": 1},
    system={"anyOf": [TEXT, several(_TEXT_BLOCK)]},
    messages=several(
        {
            "oneOf": [
                closed("role content", role={"const": "user"}, content=several(_USER_BLOCK)),
                closed("role content", role={"const": "assistant"}, content=several(_ASSISTANT_BLOCK)),
            ]
        }
    ),
    tools=several(
        closed("name input_schema", "strict", name=TOOL_NAME, description=TEXT, input_schema=SCHEMA)
    ),
    tool_choice=closed("type", "disable_parallel_tool_use", type={"enum": ["auto", "any", "none"]}),
    output_config=closed(
        "format", format=closed("type schema", type={"const": "json_schema"}, schema=SCHEMA)
    ),
    temperature={"type": "number"},
    stream={"const": False},
)


def _hold(schema: Body, body: Body) -> None:
    faults = [
        f"{fault.json_path}: {fault.message[:300]}"
        for fault in Draft202012Validator(schema).iter_errors(body)
    ]
    assert faults == []


def _is_object(text: str) -> bool:
    return isinstance(json.loads(text), dict)


def chat(body: Body) -> None:
    """A chat completion: the results of an assistant's calls are the messages right after it."""
    _hold(CHAT, body)
    messages = body["messages"]
    for at, message in enumerate(messages):
        results = takewhile(lambda one: one["role"] == "tool", messages[at + 1 :])
        calls = message.get("tool_calls", [])
        assert all(_is_object(call["function"]["arguments"]) for call in calls)
        if message["role"] != "tool":
            answered = sorted(one["tool_call_id"] for one in results)
            assert answered == sorted(call["id"] for call in calls)


def responses(body: Body) -> None:
    """A response: each call has one output somewhere after it."""
    _hold(RESPONSES, body)
    open_: list[str] = []
    for item in body["input"]:
        if item.get("type") == "function_call":
            assert _is_object(item["arguments"])
            open_.append(item["call_id"])
        elif item.get("type") == "function_call_output":
            open_.remove(item["call_id"])
    assert open_ == []


def messages(body: Body) -> None:
    """Anthropic messages: roles alternate from user on; results open the message after their calls."""
    _hold(MESSAGES, body)
    said = body["messages"]
    assert [message["role"] for message in said] == [("user", "assistant")[at % 2] for at in range(len(said))]
    asked: list[str] = []
    for message in said:
        if message["role"] == "user":
            blocks = message["content"]
            assert [block["type"] for block in blocks[: len(asked)]] == ["tool_result"] * len(asked)
            assert sorted(_results(blocks)) == sorted(asked)
        asked = [block["id"] for block in message["content"] if block["type"] == "tool_use"]


def _results(blocks: list[Body]) -> Iterator[str]:
    return (block["tool_use_id"] for block in blocks if block["type"] == "tool_result")

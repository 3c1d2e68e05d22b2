"""What OpenAI and Anthropic answer, in their wire formats: calls of tools, and texts."""

import json
from typing import Any

from tests.unit.providers.wire import completion, tool_call

Body = dict[str, Any]
Call = tuple[str, str, Any]
"""The id of a call, the tool's name, and its arguments (a text is sent as it is, however broken)."""


def _written(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def chat_calls(*calls: Call) -> Body:
    asked = [tool_call(name, _written(arguments), call_id) for call_id, name, arguments in calls]
    return completion(None, "tool_calls", tool_calls=asked)


def chat_text(text: str) -> Body:
    return completion(text)


def _response(*output: Body) -> Body:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "gpt-6-luna",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 30,
            "input_tokens_details": {"cached_tokens": 12},
            "output_tokens": 9,
            "output_tokens_details": {"reasoning_tokens": 4},
            "total_tokens": 39,
        },
    }


def responses_calls(*calls: Call) -> Body:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "dGhvdWdodA=="}
    asked = [
        {
            "type": "function_call",
            "id": f"fc_{call_id}",
            "call_id": call_id,
            "name": name,
            "arguments": _written(arguments),
            "status": "completed",
        }
        for call_id, name, arguments in calls
    ]
    return _response(thought, *asked)


def responses_text(text: str) -> Body:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    return _response({**message, "content": content})


def _message(stop_reason: str, *content: Body) -> Body:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-4-5",
        "content": list(content),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 30, "cache_read_input_tokens": 12, "output_tokens": 9},
    }


def messages_calls(*calls: Call) -> Body:
    thought = {"type": "thinking", "thinking": "I need all three.", "signature": "c2lnbmVk"}
    asked = [
        {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
        for call_id, name, arguments in calls
    ]
    return _message("tool_use", thought, {"type": "text", "text": "I look it up."}, *asked)


def messages_text(text: str) -> Body:
    return _message("end_turn", {"type": "text", "text": text})

"""The floor: what a careful developer writes by hand for one tool, with JSON arguments and a history."""

import json
import time
import uuid
from datetime import UTC, datetime
from typing import Any

from benchmarks.script import ANSWER, INSTRUCTIONS, TASK, Script, check, on_threads

INSTALLED = None
TOOLS = [
    {
        "name": "add",
        "description": "Add two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    }
]


def add(a: int, b: int) -> int:
    return a + b


FUNCTIONS = {"add": add}


def answer(script: Script, request: dict[str, Any]) -> dict[str, Any]:
    """The model: gets a request, gives a message as a provider's JSON would hold it."""
    number = script.next()
    if script.delay:
        time.sleep(script.delay)
    message: dict[str, Any] = {"role": "assistant", "content": ANSWER, "tool_calls": []}
    if number is not None:
        arguments = json.dumps({"a": number, "b": 1})
        call = {"id": f"call_{number}", "name": "add", "arguments": arguments}
        message.update(content=None, tool_calls=[call])
    return {"message": message, "usage": {"input_tokens": 10, "output_tokens": 5}}


def run(script: Script) -> str | None:
    messages: list[dict[str, Any]] = []
    record: list[dict[str, Any]] = []

    def keep(message: dict[str, Any]) -> None:
        messages.append(message)
        moment = datetime.now(UTC).isoformat()
        record.append({"id": str(uuid.uuid4()), "at": moment, "body": json.dumps(message)})

    keep({"role": "user", "content": TASK})
    spent = 0
    for _ in range(script.steps + 1):
        request = {
            "instructions": INSTRUCTIONS,
            "messages": list(messages),
            "tools": TOOLS,
        }
        response = answer(script, request)
        spent += response["usage"]["input_tokens"] + response["usage"]["output_tokens"]
        message = response["message"]
        keep(message)
        if not message["tool_calls"]:
            return message["content"]
        for call in message["tool_calls"]:
            try:
                result = FUNCTIONS[call["name"]](**json.loads(call["arguments"]))
                content = json.dumps(result)
            except Exception as exc:
                content = f"{type(exc).__name__}: {exc}"
            keep({"role": "tool", "tool_call_id": call["id"], "content": content})
    return None


def steps(count: int) -> list[float]:
    script = Script(count)
    check(run(script))
    return script.stamps


def crowd(runs: int, count: int, delay: float) -> None:
    on_threads(lambda: check(run(Script(count, delay))), runs)

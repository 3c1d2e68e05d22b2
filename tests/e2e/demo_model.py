"""A model for the demo that knows the right answers, and gives one of them wrong at first."""

import json
from typing import Any

from agency.agent import LlmRequest, Message, ToolResult
from agency.agent.testing import ScriptedLlm, call

CORRECTED = "cv-okafor"


def model() -> ScriptedLlm:
    return ScriptedLlm(_answer, loop=True)


def _answer(request: LlmRequest) -> Any:
    from records.samples import samples  # on the path of the demo's processes only

    said = [item.content for item in request.contents if isinstance(item, Message) and item.role == "user"]
    sample = next(sample for sample in samples() if sample.text.strip() in said[0])
    expected = sample.expected
    called = any(isinstance(item, ToolResult) for item in request.contents)
    if expected["kind"] == "invoice" and not called:
        total = f"{expected['total']:.2f}"
        return call("check_total", amounts=[total if expected["sum_ok"] else "1.00"], total=total)
    if sample.name == CORRECTED and len(said) == 1:
        return json.dumps(expected | {"name": "Nobody Here"})
    return json.dumps(expected)

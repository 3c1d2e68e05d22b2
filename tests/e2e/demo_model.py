"""A model for the demo that knows the right answers, and gives one of them wrong at first.

As supervisor it takes the mission for complete after each round, which the completion check must correct.
"""

import json
import re
from typing import Any

from agency.agent import LlmRequest, Message, ToolResult
from agency.agent.testing import ScriptedLlm, call

CORRECTED = "cv-okafor"
_FILED = re.compile(r"\S+ is filed as .*")


def model() -> ScriptedLlm:
    return ScriptedLlm(_answer, loop=True)


def _answer(request: LlmRequest) -> Any:
    if request.output_schema is not None and request.output_schema.name == "LoopDecision":
        return json.dumps(_decision(request))
    if any(tool.name == "next_paper" for tool in request.tools):
        return _filing(request)
    return _record(request)


def _decision(request: LlmRequest) -> dict[str, Any]:
    shown = [item.content for item in request.contents if isinstance(item, Message)]
    return {
        "reason": "The tools say so.",
        "status": "complete",
        "summary": "The papers are filed.",
        "evidence": _FILED.findall(shown[-1])[-1],
    }


def _filing(request: LlmRequest) -> Any:
    last = request.contents[-1]
    if not isinstance(last, ToolResult):
        return call("next_paper")
    paper = str(last.content).removeprefix("paper: ").partition("\n")[0]
    expected = _samples()[paper].expected
    return call("file_paper", paper=paper, kind=expected["kind"], name=expected["name"])


def _record(request: LlmRequest) -> Any:
    said = [item.content for item in request.contents if isinstance(item, Message) and item.role == "user"]
    sample = next(sample for sample in _samples().values() if sample.text.strip() in said[0])
    expected = sample.expected
    called = any(isinstance(item, ToolResult) for item in request.contents)
    if expected["kind"] == "invoice" and not called:
        total = f"{expected['total']:.2f}"
        return call("check_total", amounts=[total if expected["sum_ok"] else "1.00"], total=total)
    if sample.name == CORRECTED and len(said) == 1:
        return json.dumps(expected | {"name": "Nobody Here"})
    return json.dumps(expected)


def _samples() -> dict[str, Any]:
    from records.samples import samples  # on the path of the demo's processes only

    return {sample.name: sample for sample in samples()}

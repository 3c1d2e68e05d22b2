"""What a vendor is told beside the history: kept between requests, and made anew when it changes."""

from typing import Any

from agency.agent.llm import LlmRequest, OutputSchema, ToolSpec
from agency.agent.providers.translate import to_parameters

ADD = ToolSpec("add", "Add.", {"type": "object", "properties": {}})
SUB = ToolSpec("sub", "Subtract.", {"type": "object", "properties": {}})
SUM = OutputSchema("Sum", {"type": "object"})


def asked(kept: dict[Any, Any], **more: Any) -> LlmRequest:
    return LlmRequest(instructions=["Count."], kept=kept, **more)


def test_parameters_are_made_once_for_requests_that_tell_the_same() -> None:
    kept: dict[Any, Any] = {}
    first = to_parameters(asked(kept, tools=[ADD]), native=False)
    assert to_parameters(asked(kept, tools=[ADD]), native=False) is first
    assert [tool.name for tool in first.function_tools] == ["add"]


def test_other_tools_or_another_shape_are_told_at_once() -> None:
    kept: dict[Any, Any] = {}
    request = asked(kept, tools=[ADD])
    to_parameters(request, native=False)
    request.tools.append(SUB)
    assert [tool.name for tool in to_parameters(request, native=False).function_tools] == ["add", "sub"]
    request.output_schema = SUM
    assert [tool.name for tool in to_parameters(request, native=False).output_tools] == ["final_answer"]
    assert to_parameters(request, native=True).output_mode == "native"
    request.output_schema = None
    assert to_parameters(request, native=False).output_tools == []

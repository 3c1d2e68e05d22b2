"""pydantic-ai with its function model and a tool that runs on the event loop."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage, UsageLimits

from benchmarks.script import ANSWER, INSTRUCTIONS, TASK, Script, check

INSTALLED = "pydantic-ai-slim"


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def _run(script: Script) -> None:
    async def play(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        number = script.next()
        if script.delay:
            await asyncio.sleep(script.delay)
        part: TextPart | ToolCallPart = TextPart(ANSWER)
        if number is not None:
            part = ToolCallPart("add", {"a": number, "b": 1}, tool_call_id=f"call_{number}")
        return ModelResponse(parts=[part], usage=RequestUsage(input_tokens=10, output_tokens=5))

    agent = Agent(FunctionModel(play), instructions=INSTRUCTIONS, tools=[add])
    result = await agent.run(TASK, usage_limits=UsageLimits(request_limit=None))
    check(result.output)


def steps(count: int) -> list[float]:
    script = Script(count)
    asyncio.run(_run(script))
    return script.stamps


def crowd(runs: int, count: int, delay: float) -> None:
    async def all_of_them() -> None:
        await asyncio.gather(*(_run(Script(count, delay)) for _ in range(runs)))

    asyncio.run(all_of_them())

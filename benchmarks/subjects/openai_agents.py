"""OpenAI's Agents SDK with a model class that plays the script, its tracing off."""

import asyncio
import json
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from benchmarks.script import ANSWER, INSTRUCTIONS, TASK, Script, check

INSTALLED = "openai-agents"


@function_tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Scripted(Model):
    """Plays the script."""

    def __init__(self, script: Script) -> None:
        self.script = script

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        number = self.script.next()
        if self.script.delay:
            await asyncio.sleep(self.script.delay)
        usage = Usage(requests=1, input_tokens=10, output_tokens=5, total_tokens=15)
        return ModelResponse(output=[_item(number)], usage=usage, response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def _item(number: int | None) -> Any:
    if number is not None:
        arguments = json.dumps({"a": number, "b": 1})
        call_id = f"call_{number}"
        return ResponseFunctionToolCall(
            id=call_id, call_id=call_id, name="add", arguments=arguments, type="function_call"
        )
    text = ResponseOutputText(text=ANSWER, type="output_text", annotations=[])
    return ResponseOutputMessage(
        id="answer", type="message", role="assistant", content=[text], status="completed"
    )


async def _run(script: Script) -> None:
    agent = Agent(name="adder", instructions=INSTRUCTIONS, model=Scripted(script), tools=[add])
    config = RunConfig(tracing_disabled=True)
    result = await Runner.run(agent, TASK, max_turns=script.steps + 1, run_config=config)
    check(result.final_output)


def steps(count: int) -> list[float]:
    script = Script(count)
    asyncio.run(_run(script))
    return script.stamps


def crowd(runs: int, count: int, delay: float) -> None:
    async def all_of_them() -> None:
        await asyncio.gather(*(_run(Script(count, delay)) for _ in range(runs)))

    asyncio.run(all_of_them())

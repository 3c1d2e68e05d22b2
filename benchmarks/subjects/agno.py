"""agno with a model class that plays the script; sync for the steps, async for the crowd."""

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any

from agno.agent import Agent
from agno.metrics import MessageMetrics
from agno.models.base import Model
from agno.models.response import ModelResponse

from benchmarks.script import ANSWER, INSTRUCTIONS, TASK, Script, check

INSTALLED = "agno"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@dataclass
class Scripted(Model):
    """Plays the script."""

    script: Any = None

    def invoke(self, *args: Any, **kwargs: Any) -> ModelResponse:
        number = self.script.next()
        if self.script.delay:
            time.sleep(self.script.delay)
        return _response(number)

    async def ainvoke(self, *args: Any, **kwargs: Any) -> ModelResponse:
        number = self.script.next()
        if self.script.delay:
            await asyncio.sleep(self.script.delay)
        return _response(number)

    def invoke_stream(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def ainvoke_stream(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def _parse_provider_response(self, response: Any, **kwargs: Any) -> ModelResponse:
        return response

    def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
        return response


def _response(number: int | None) -> ModelResponse:
    usage = MessageMetrics(input_tokens=10, output_tokens=5, total_tokens=15)
    if number is None:
        return ModelResponse(role="assistant", content=ANSWER, response_usage=usage)
    function = {"name": "add", "arguments": json.dumps({"a": number, "b": 1})}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return ModelResponse(role="assistant", tool_calls=[call], response_usage=usage)


def _agent(script: Script) -> Agent:
    model = Scripted(id="model", provider="bench", script=script)
    return Agent(model=model, instructions=INSTRUCTIONS, tools=[add], telemetry=False)


def steps(count: int) -> list[float]:
    script = Script(count)
    check(_agent(script).run(TASK).content)
    return script.stamps


def crowd(runs: int, count: int, delay: float) -> None:
    async def one() -> None:
        result = await _agent(Script(count, delay)).arun(TASK)
        check(result.content)

    async def all_of_them() -> None:
        await asyncio.gather(*(one() for _ in range(runs)))

    asyncio.run(all_of_them())

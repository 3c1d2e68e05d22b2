"""agency through its provider adapter: every request goes to the background event loop and back.

The vendor's place is taken by pydantic-ai's function model, so that all of the adapter's own work counts.
"""

import asyncio

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from agency.agent import Agent
from agency.agent.providers.vendor import VendorClient
from benchmarks.script import ANSWER, INSTRUCTIONS, TASK, Script, check, on_threads
from benchmarks.subjects.agency_sync import add

INSTALLED = "agency-django"


class Client(VendorClient):
    """The adapter with a model that plays the script."""

    def __init__(self, script: Script) -> None:
        super().__init__("bench", "model")
        self.script = script
        self._model = FunctionModel(self._play, model_name="model")

    @property
    def model(self) -> Model:
        return self._model

    async def _play(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        number = self.script.next()
        if self.script.delay:
            await asyncio.sleep(self.script.delay)
        part: TextPart | ToolCallPart = TextPart(ANSWER)
        if number is not None:
            part = ToolCallPart("add", {"a": number, "b": 1}, tool_call_id=f"call_{number}")
        return ModelResponse(parts=[part], usage=RequestUsage(input_tokens=10, output_tokens=5))


def _run(script: Script) -> None:
    agent = Agent("adder", Client(script), INSTRUCTIONS, [add], max_steps=script.steps + 1)
    check(agent.run(TASK).output)


def steps(count: int) -> list[float]:
    script = Script(count)
    _run(script)
    return script.stamps


def crowd(runs: int, count: int, delay: float) -> None:
    on_threads(lambda: _run(Script(count, delay)), runs)

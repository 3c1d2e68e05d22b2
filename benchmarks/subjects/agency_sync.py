"""agency with a client of one method and a tool that runs on the run's own thread."""

import time

from agency.agent import Agent, ExecutionContext, LlmRequest, LlmResponse, Message, ToolCall, Usage, tool
from benchmarks.script import ANSWER, INSTRUCTIONS, TASK, Script, check, on_threads

INSTALLED = "agency-django"


@tool(effect="read")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Client:
    """Plays the script as a provider's client would give it."""

    model_name = "bench:model"

    def __init__(self, script: Script) -> None:
        self.script = script

    def generate(self, request: LlmRequest) -> LlmResponse:
        response = self.play()
        if self.script.delay:
            time.sleep(self.script.delay)
        return response

    def play(self) -> LlmResponse:
        number = self.script.next()
        usage = Usage(model_calls=1, input_tokens=10, output_tokens=5)
        if number is None:
            return LlmResponse([Message(role="assistant", content=ANSWER)], usage, "stop")
        call = ToolCall(tool_call_id=f"call_{number}", name="add", arguments={"a": number, "b": 1})
        return LlmResponse([call], usage, "tool_calls")


def agent_for(script: Script) -> Agent:
    return Agent("adder", Client(script), INSTRUCTIONS, [add], max_steps=script.steps + 1)


def steps(count: int, context: ExecutionContext | None = None) -> list[float]:
    script = Script(count)
    check(agent_for(script).run(TASK, context).output)
    return script.stamps


def crowd(runs: int, count: int, delay: float) -> None:
    on_threads(lambda: check(agent_for(Script(count, delay)).run(TASK).output), runs)

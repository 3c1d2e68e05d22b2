"""agency with a client that does its I/O on the background event loop, as providers do, and nothing else."""

import asyncio

from agency.agent import Agent, LlmRequest, LlmResponse, background
from benchmarks.script import INSTRUCTIONS, TASK, Script, check, on_threads
from benchmarks.subjects.agency_sync import Client, add

INSTALLED = "agency-django"


class LoopClient(Client):
    """Waits on the loop instead of the run's thread."""

    def generate(self, request: LlmRequest) -> LlmResponse:
        return background.run(self._answer(), timeout=60)

    async def _answer(self) -> LlmResponse:
        response = self.play()
        if self.script.delay:
            await asyncio.sleep(self.script.delay)
        return response


def _run(script: Script) -> None:
    agent = Agent("adder", LoopClient(script), INSTRUCTIONS, [add], max_steps=script.steps + 1)
    check(agent.run(TASK).output)


def steps(count: int) -> list[float]:
    script = Script(count)
    _run(script)
    return script.stamps


def crowd(runs: int, count: int, delay: float) -> None:
    on_threads(lambda: _run(Script(count, delay)), runs)

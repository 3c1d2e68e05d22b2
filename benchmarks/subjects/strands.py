"""Strands with a model class that streams the script, its console output off."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from strands import Agent, tool
from strands.agent.conversation_manager import NullConversationManager
from strands.models import Model

from benchmarks.script import ANSWER, INSTRUCTIONS, TASK, Script, check

INSTALLED = "strands-agents"


@tool
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first number.
        b: The second number.
    """
    return a + b


class Scripted(Model):
    """Plays the script."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def update_config(self, **model_config: Any) -> None:
        return None

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        number = self.script.next()
        if self.script.delay:
            await asyncio.sleep(self.script.delay)
        yield {"messageStart": {"role": "assistant"}}
        if number is None:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": ANSWER}}}
        else:
            start = {"toolUse": {"name": "add", "toolUseId": f"call_{number}"}}
            yield {"contentBlockStart": {"start": start}}
            arguments = json.dumps({"a": number, "b": 1})
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": arguments}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if number is None else "tool_use"}}
        used = {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}
        yield {"metadata": {"usage": used, "metrics": {"latencyMs": 0}}}


async def _run(script: Script) -> None:
    agent = Agent(
        model=Scripted(script),
        system_prompt=INSTRUCTIONS,
        tools=[add],
        callback_handler=None,
        conversation_manager=NullConversationManager(),
    )
    result = await agent.invoke_async(TASK)
    check(str(result).strip())


def steps(count: int) -> list[float]:
    script = Script(count)
    asyncio.run(_run(script))
    return script.stamps


def crowd(runs: int, count: int, delay: float) -> None:
    async def all_of_them() -> None:
        await asyncio.gather(*(_run(Script(count, delay)) for _ in range(runs)))

    asyncio.run(all_of_them())

"""LangGraph's prebuilt ReAct agent, compiled once per run, with a chat model that plays the script."""

import asyncio
import time
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.prebuilt import create_react_agent

from benchmarks.script import ANSWER, INSTRUCTIONS, TASK, Script, check

INSTALLED = "langgraph"


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Model(BaseChatModel):
    """Plays the script."""

    script: Any

    @property
    def _llm_type(self) -> str:
        return "bench"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        number = self.script.next()
        if self.script.delay:
            time.sleep(self.script.delay)
        return _result(number)

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        number = self.script.next()
        if self.script.delay:
            await asyncio.sleep(self.script.delay)
        return _result(number)


def _result(number: int | None) -> ChatResult:
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    message = AIMessage(content=ANSWER, usage_metadata=usage)
    if number is not None:
        call = {"name": "add", "args": {"a": number, "b": 1}, "id": f"call_{number}"}
        message = AIMessage(content="", tool_calls=[call], usage_metadata=usage)
    return ChatResult(generations=[ChatGeneration(message=message)])


def _input(script: Script) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"messages": [("user", TASK)]}, {"recursion_limit": 2 * script.steps + 10}


def _agent(script: Script) -> Any:
    return create_react_agent(Model(script=script), [add], prompt=INSTRUCTIONS)


def steps(count: int) -> list[float]:
    script = Script(count)
    state = _agent(script).invoke(*_input(script))
    check(state["messages"][-1].content)
    return script.stamps


def crowd(runs: int, count: int, delay: float) -> None:
    async def one() -> None:
        script = Script(count, delay)
        state = await _agent(script).ainvoke(*_input(script))
        check(state["messages"][-1].content)

    async def all_of_them() -> None:
        await asyncio.gather(*(one() for _ in range(runs)))

    asyncio.run(all_of_them())

"""LangGraph's prebuilt ReAct agent over its PostgresSaver, each super-step stored before the next begins."""

import time
import uuid
from typing import Any

import psycopg
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.prebuilt import create_react_agent
from psycopg.rows import dict_row

from benchmarks.durable.script import ANSWER, DONE, RESULT, SIZE

INSTALLED = "langgraph-checkpoint-postgres"


@tool
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return RESULT


class Model(BaseChatModel):
    """Asks for the tool `steps` times, then is done."""

    steps: int
    stamps: list[float]

    @property
    def _llm_type(self) -> str:
        return "bench"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        number = len(self.stamps)
        self.stamps.append(time.perf_counter())
        message = AIMessage(content=DONE)
        if number < self.steps:
            call = {"name": "add", "args": {"a": number, "b": 1}, "id": f"call_{number}"}
            message = AIMessage(content=ANSWER, tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


class Subject:
    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True, prepare_threshold=0, row_factory=dict_row)
        self.saver = PostgresSaver(self.connection)
        self.saver.setup()

    def steps(self, count: int) -> list[float]:
        stamps: list[float] = []
        model = Model.model_construct(steps=count, stamps=stamps)
        agent = create_react_agent(model, [add], checkpointer=self.saver)
        config: Any = {
            "configurable": {"thread_id": str(uuid.uuid4())},
            "recursion_limit": 2 * count + 10,
        }
        state = agent.invoke({"messages": [("user", "Add the numbers.")]}, config, durability="sync")
        assert state["messages"][-1].content == DONE
        return stamps

    def stored(self) -> int:
        found = self.connection.execute(SIZE).fetchone()
        assert found is not None
        return int(next(iter(found.values())))

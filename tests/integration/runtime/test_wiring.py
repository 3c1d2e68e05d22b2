"""A run is put together from its row: tools of every kind, and the clients that the project chose."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from pydantic import BaseModel

from agency.agent import BaseAgent, BaseLLMTool, LlmRequest, LLMToolConfig, Message, Tool, tool
from agency.agent.testing import ScriptedLlm, call
from agency.execution import (
    BaseAgenticExecutionDefinition,
    Conversation,
    ExecutionInputType,
    registry,
    service,
)
from agency.models import ConfiguredAgent
from agency.testing import run_until_parked

pytestmark = pytest.mark.django_db


class Shelf:
    """A source of tools, open or not."""

    name = "shelf"
    opened = 0

    @contextmanager
    def connected(self) -> Iterator[list[Tool]]:
        @tool
        def fetch(book: str) -> str:
            """Fetch a book."""
            return f"{book} is here"

        self.opened += 1
        yield [fetch]


class Question(BaseModel):
    text: str


class Ask(BaseLLMTool):
    NAME = "ask_expert"
    DESCRIPTION = "Asks an expert."
    ARGS_SCHEMA = Question

    def run(self, text: str) -> str:
        return self.llm.generate(LlmRequest(contents=[Message(role="user", content=text)])).text


class Reader(BaseAgent):
    AGENT_KEY = "reader"
    NAME = "Reader"
    SYSTEM_PROMPT = "Read."
    TOOLS = [Shelf(), LLMToolConfig(tool_class=Ask, llm="openai:of-the-expert")]


class Read(BaseAgenticExecutionDefinition):
    EXECUTION_KEY = "read"
    AGENT_KEY = "reader"
    NAME = "Read"
    VALIDATORS = []

    def execute(self, input_data: ExecutionInputType, conversation: Conversation) -> str:
        return conversation.ask("Read the book.")


@pytest.fixture(autouse=True)
def known_definitions() -> Iterator[None]:
    with registry.isolated(empty=True):
        registry.register(Reader, Read)
        yield


def test_a_source_of_tools_is_opened_for_the_run(
    agency_agent: Callable[..., ConfiguredAgent], scripted_llm: Callable[..., ScriptedLlm]
) -> None:
    scripted_llm(call("fetch", book="Emma"), "Read.")
    execution = run_until_parked(service.submit("read", agency_agent("reader"), {}).execution)
    results = [row.content[0] for row in execution.events.all() if row.content[:1]]
    assert [one["content"] for one in results if one["type"] == "tool_result"] == ["Emma is here"]
    assert execution.status == "finished"


def test_a_tool_with_a_model_of_its_own_asks_the_client_that_the_project_chose(
    agency_agent: Callable[..., ConfiguredAgent], scripted_llm: Callable[..., ScriptedLlm]
) -> None:
    llm = scripted_llm(call("ask_expert", text="Who wrote it?"), "Austen.", "Jane Austen wrote it.")
    execution = run_until_parked(service.submit("read", agency_agent("reader"), {}).execution)
    assert execution.output == {"response": "Jane Austen wrote it."}
    assert llm.requests[1].contents[0].content == "Who wrote it?"

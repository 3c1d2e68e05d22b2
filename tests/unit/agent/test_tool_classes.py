"""Class tools, their settings, and the declarations that say which tools an agent has."""

from typing import Any

import pytest
from pydantic import BaseModel, Field

from agency.agent import (
    Agent,
    BaseFunctionTool,
    BaseLLMTool,
    BaseTool,
    Effect,
    ExecutionContext,
    FunctionToolConfig,
    Limits,
    LlmRequest,
    LlmResponse,
    LLMToolConfig,
    Message,
    ToolConfig,
    ToolDefinitionError,
    Usage,
    resolve_tools,
    tool,
)
from agency.agent.journal import RunScope
from agency.agent.testing import ScriptedLlm, call
from agency.errors import ModelOutputInvalid
from tests.unit.agent.doubles import MemoryJournal


class SearchArgs(BaseModel):
    query: str = Field(description="What to look for.")
    limit: int = 5


class SearchSettings(BaseModel):
    index: str
    boost: float = 1.0


class Search(BaseFunctionTool):
    """Search the index."""

    NAME = "search"
    ARGS_SCHEMA = SearchArgs
    CONFIGURATION_ARGS = SearchSettings
    EFFECT = Effect.READ

    def run(self, query: str, limit: int, context: ExecutionContext) -> str:
        return f"{self.configuration.index}:{query}:{limit}:{context.current_step}"


class Summarise(BaseLLMTool):
    NAME = "summarise"
    DESCRIPTION = "Make it short."

    def run(self, text: str) -> str:
        request = LlmRequest(contents=[Message(role="user", content=text)])
        return f"{self.llm.generate(request).text} from {self.data_set}"


class Stop(BaseFunctionTool):
    NAME = "stop"
    DESCRIPTION = "Stop."
    RETURN_DIRECT = True

    def run(self, reason: str) -> str:
        return reason


def run(declared: Any, calls: Any, **options: Any) -> Any:
    agent = Agent("clerk", ScriptedLlm(calls, "done"), tools=[declared], **options)
    return agent.run("go").context.events[2].tool_results[0]


def test_a_class_tool_gets_validated_arguments_settings_and_injections() -> None:
    config = ToolConfig(Search, {"index": "docs"})
    assert run(config, call("search", query="x")).content == "docs:x:5:0"


def test_its_schema_is_the_args_schema() -> None:
    (made,) = resolve_tools([ToolConfig(Search, SearchSettings(index="docs"))])
    assert made.spec.description == "Search the index."
    assert made.spec.parameters["properties"]["query"] == {
        "type": "string",
        "description": "What to look for.",
    }
    assert made.spec.parameters["required"] == ["query"]
    assert made.effect is Effect.READ


def test_wrong_arguments_of_a_class_tool_name_the_field() -> None:
    result = run(ToolConfig(Search, {"index": "docs"}), call("search", limit="many"))
    assert result.status == "error"
    assert "query: Field required" in result.content


def test_stored_settings_override_the_declared_ones() -> None:
    config = ToolConfig(Search, {"index": "docs", "boost": 2})
    (made,) = resolve_tools([config], settings={"search": {"index": "mail"}})
    assert made.function.__self__.configuration == SearchSettings(index="mail", boost=2)


def test_settings_that_do_not_fit_name_tool_and_field() -> None:
    with pytest.raises(ToolDefinitionError, match="'search': configuration: index: Field required"):
        resolve_tools([Search])


def test_settings_for_a_tool_that_has_none_are_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="takes no configuration"):
        resolve_tools([ToolConfig(Stop, {"a": 1})])


def test_an_llm_tool_gets_the_agents_model_and_data_set() -> None:
    llm = ScriptedLlm(call("summarise", text="long"), "short", "done")
    agent = Agent("clerk", llm, tools=[LLMToolConfig(tool_class=Summarise)], data_set="the archive")
    assert agent.run("go").context.events[2].tool_results[0].content == "short from the archive"


def test_an_llm_tool_may_have_a_model_of_its_own() -> None:
    own = ScriptedLlm("tiny")
    assert run(LLMToolConfig(Summarise, llm=own), call("summarise", text="long")).content == "tiny from None"


class Both(Summarise):
    """Asks twice, once in pieces, and hears of an answer that nobody can read."""

    NAME = "both"
    PARALLEL = False

    def run(self, text: str) -> str:
        request = LlmRequest(contents=[Message(role="user", content=text)])
        *_, whole = self.llm.stream(request)
        try:
            self.llm.generate(request)
        except ModelOutputInvalid:
            return whole.text
        raise AssertionError


class Later(Summarise):
    NAME = "later"

    async def run(self, text: str) -> str:
        return super().run(text)


PRICE = Usage(model_calls=1, input_tokens=40, output_tokens=2, cost=0.5)


def priced(text: str) -> LlmResponse:
    return LlmResponse([Message(role="assistant", content=text)], PRICE)


def test_what_an_llm_tool_asks_counts_for_the_turn_and_its_limits() -> None:
    own = ScriptedLlm(priced("a"), priced("b"), priced("c"))
    calls = [call("summarise", "1", text="x"), call("summarise", "2", text="y"), call("later", "3", text="z")]
    agent = Agent(
        "clerk",
        ScriptedLlm(calls, "done"),
        tools=[LLMToolConfig(Summarise, llm=own), LLMToolConfig(Later, llm=own)],
        limits=Limits(max_cost=1.5),
    )
    result = agent.run("go")
    assert result.context.events[2].usage == Usage(
        model_calls=3, tool_calls=3, input_tokens=120, output_tokens=6, cost=1.5
    )
    assert (result.status, result.stop_reason) == ("limit", "max_cost")


def test_answers_in_pieces_and_those_that_nobody_can_read_count_too() -> None:
    own = ScriptedLlm(priced("a"), ModelOutputInvalid("no JSON", "{"))
    agent = Agent("clerk", ScriptedLlm(call("both", text="x"), "done"), tools=[LLMToolConfig(Both, llm=own)])
    usage = agent.run("go").context.events[2].usage
    assert usage == Usage(model_calls=2, tool_calls=1, input_tokens=40, output_tokens=2, cost=0.5)


def test_what_was_spent_before_a_crash_is_read_from_the_journal() -> None:
    journal, calls = MemoryJournal(), [call("summarise", "1", text="x"), call("summarise", "2", text="y")]

    def run_with(own: ScriptedLlm) -> Usage | None:
        llm = ScriptedLlm(calls, "done")
        agent = Agent("c", llm, tools=[LLMToolConfig(Summarise, llm=own)], scope=RunScope(journal))
        return agent.run("go").context.events[2].usage

    whole = run_with(ScriptedLlm(priced("a"), priced("b")))
    journal.forget_after(3)  # the user event, the answer, the call that ended first
    own = ScriptedLlm(priced("b"))
    assert run_with(own) == whole
    assert (len(own.requests), whole and whole.cost) == (1, 1.0)


def test_an_llm_tool_without_a_model_says_what_to_give() -> None:
    (made,) = resolve_tools([Summarise])
    with pytest.raises(ToolDefinitionError, match="LLMToolConfig"):
        made.invoke({"text": "x"})


def test_an_llm_config_takes_a_tool_that_needs_no_model() -> None:
    result = Agent(
        "clerk", ScriptedLlm(call("stop", reason="enough")), tools=[LLMToolConfig(tool_class=Stop)]
    ).run("go")
    assert (result.output, result.stop_reason) == ("enough", "return_direct")


def double(n: int) -> int:
    return 2 * n


@pytest.mark.parametrize(
    ("declared", "name"),
    [
        (double, "double"),
        (tool(double), "double"),
        (FunctionToolConfig(double), "double"),
        (FunctionToolConfig(tool(name="twice")(double)), "twice"),
        (Stop, "stop"),
        (Stop(), "stop"),
        (ToolConfig(Stop), "stop"),
        (Summarise(llm=ScriptedLlm()), "summarise"),
    ],
)
def test_every_kind_of_declaration_becomes_a_tool(declared: Any, name: str) -> None:
    assert [made.name for made in resolve_tools([declared])] == [name]


def test_a_list_of_tools_can_be_extended_as_definitions_do() -> None:
    names = [made.name for made in resolve_tools([*[double], LLMToolConfig(tool_class=Stop)])]
    assert names == ["double", "stop"]


class Nameless(BaseTool):
    def run(self) -> None: ...


class Idle(BaseTool):
    NAME = "idle"


class Mismatched(BaseTool):
    NAME = "mismatched"
    ARGS_SCHEMA = SearchArgs

    def run(self, query: str) -> None: ...


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (Nameless, "Nameless has no NAME"),
        (Idle, "has no run"),
        (Mismatched, r"run\(\) does not take limit"),
        ("double", "is no tool"),
        (int, "is no tool"),
    ],
)
def test_a_wrong_declaration_is_refused_by_name(declared: Any, message: str) -> None:
    with pytest.raises(ToolDefinitionError, match=message):
        resolve_tools([declared])


def test_a_configuration_object_is_taken_as_it_is() -> None:
    settings = SearchSettings(index="docs")
    assert Search(settings).configuration is settings

"""What is said of agent classes and definitions that are not as they must be."""

from typing import Any

import pytest
from pydantic import BaseModel

from agency.agent import BaseAgent, BaseAgentTool, BaseTool, LLMToolConfig, McpServer, ToolConfig, tool
from agency.execution import (
    BaseAgenticExecutionDefinition,
    ExecutionFailureCode,
    ExecutionInputType,
    IsValidJsonValidator,
    JudgeValidator,
    MatchesSchemaValidator,
    StopExecutionTool,
)
from agency.execution.declaration import agent_faults, definition_faults
from tests.unit.execution.definitions import Report


class Clerk(BaseAgent):
    AGENT_KEY = "clerk"
    NAME = "Clerk"


class Settings(BaseModel):
    folder: str


class Filing(BaseTool):
    NAME = "file"
    CONFIGURATION_ARGS = Settings

    def run(self, name: str) -> str:
        return name


class Nameless(BaseTool):
    def run(self) -> str:
        return ""


class OpaqueInput(ExecutionInputType):
    model_config = {"arbitrary_types_allowed": True}
    thing: IsValidJsonValidator


class NumberCode(ExecutionFailureCode):
    ODD = 3


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def definition(**attributes: Any) -> Any:
    return type("Made", (Report,), attributes)


def agent(**attributes: Any) -> Any:
    return type("MadeAgent", (Clerk,), attributes)


def test_a_sound_definition_has_no_fault():
    assert definition_faults(Report) == []
    full = definition(
        TOOLS=[
            add,
            Filing,
            LLMToolConfig(tool_class=StopExecutionTool),
            McpServer(name="add", command=["x"]),
        ],
        VALIDATORS=(MatchesSchemaValidator({"type": "object"}), JudgeValidator("a:b", "x"), lambda: None),
        OUTPUT_TYPE={"type": "object"},
        MAX_RETRIES=0,
        DESCRIPTION="What it does.",
    )
    assert definition_faults(full) == []


def test_the_tools_that_a_definition_needs_run_as_written_in_the_documentation():
    assert (
        definition_faults(definition(TOOLS=[*Clerk.TOOLS, LLMToolConfig(tool_class=StopExecutionTool)])) == []
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EXECUTION_KEY", ""),
        ("EXECUTION_KEY", "with space"),
        ("EXECUTION_KEY", "x" * 101),
        ("EXECUTION_KEY", 3),
        ("AGENT_KEY", None),
        ("NAME", ""),
        ("NAME", " "),
        ("DESCRIPTION", 3),
        ("INPUT_TYPE", BaseModel),
        ("INPUT_TYPE", dict),
        ("INPUT_TYPE", OpaqueInput),
        ("VALIDATORS", IsValidJsonValidator),
        ("VALIDATORS", [str]),
        ("VALIDATORS", ["json"]),
        ("SYSTEM_PROMPT", 3),
        ("TOOLS", add),
        ("TOOLS", ["add"]),
        ("TOOLS", [add, add]),
        ("TOOLS", [McpServer(name="files", command=["x"]), McpServer(name="files", command=["y"])]),
        ("TOOLS", [Filing, ToolConfig(Filing)]),
        ("TOOLS", [Nameless]),
        ("MAX_RETRIES", -1),
        ("MAX_RETRIES", True),
        ("MAX_RETRIES", 1.5),
        ("FAILURE_CODES", ["a"]),
        ("FAILURE_CODES", NumberCode),
        ("OUTPUT_TYPE", 3),
        ("FAILURE_SUMMARY_PROMPT", None),
        ("FAILURE_SUMMARY_PROMPT", ""),
        ("LIMITS", 10),
    ],
)
def test_each_wrong_class_variable_is_named_with_a_fix(name: str, value: Any):
    (fault,) = definition_faults(definition(**{name: value}))
    assert name in fault.message
    assert fault.hint


def test_a_definition_with_nothing_set_names_everything_that_is_missing():
    class Empty(BaseAgenticExecutionDefinition):
        pass

    missing = {fault.message for fault in definition_faults(Empty)}
    assert missing == {
        "EXECUTION_KEY is missing",
        "AGENT_KEY is missing",
        "NAME is missing",
        "execute() is missing",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AGENT_KEY", ""),
        ("AGENT_KEY", "a/b"),
        ("NAME", None),
        ("SYSTEM_PROMPT", None),
        ("TOOLS", None),
        ("TOOLS", [3]),
        ("DEFAULT_MODEL", "gpt"),
        ("DEFAULT_MODEL", "openai:"),
        ("MAX_STEPS", 0),
        ("PROMPT_INPUT", dict),
        ("LIMITS", {}),
        ("FIRST_TOOLS", "add"),
        ("FIRST_TOOLS", ["subtract"]),
    ],
)
def test_each_wrong_class_variable_of_an_agent_is_named(name: str, value: Any):
    (fault,) = agent_faults(agent(**{name: value}))
    assert name in fault.message


def test_a_sound_agent_has_no_fault():
    assert agent_faults(Clerk) == []
    assert agent_faults(agent(TOOLS=[Filing, add], FIRST_TOOLS=["add"])) == []
    assert agent_faults(agent(DEFAULT_MODEL="openai:gpt-5-mini", TOOLS=[Filing, add], SYSTEM_PROMPT="")) == []


def test_an_agent_as_a_tool_may_leave_the_model_to_its_caller() -> None:
    class Asking(BaseAgentTool):
        NAME = "helper"
        AGENT = agent(NAME="helper", DESCRIPTION="Helps.")

    assert agent_faults(agent(TOOLS=[Asking])) == []

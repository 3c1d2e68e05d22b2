"""Agents declared as classes."""

import pytest
from pydantic import BaseModel

from agency.agent import BaseAgent, Limits, tool
from agency.agent.testing import ScriptedLlm, call
from agency.errors import ConfigurationError, InvalidInput


class Voice(BaseModel):
    tone: str
    words: int = 50


def echo(text: str) -> str:
    return text


class Writer(BaseAgent):
    AGENT_KEY = "writer"
    NAME = "Writer"
    SYSTEM_PROMPT = "Write {tone}, at most {words} words. Answer as {json}."
    TOOLS = [echo]
    MAX_STEPS = 2
    LIMITS = Limits(max_tool_calls=7)
    PROMPT_INPUT = Voice


class Plain(BaseAgent):
    NAME = "Plain"
    SYSTEM_PROMPT = "Keep {braces}."
    DEFAULT_MODEL = "scripted:somewhere:llm"


def test_a_declared_agent_runs_with_what_it_declares() -> None:
    llm = ScriptedLlm(call("echo", text="x"), "done")
    agent = Writer.build(llm, variables={"tone": "kindly"})
    assert agent.run("go").output == "done"
    assert (agent.name, agent.max_steps, agent.limits) == ("Writer", 2, Limits(max_tool_calls=7))
    assert llm.requests[0].instructions == ["Write kindly, at most 50 words. Answer as {json}."]


def test_given_options_replace_the_declared_ones() -> None:
    agent = Writer.build(
        ScriptedLlm(), tools=[], instructions="Be {tone}.", variables={"tone": "dry"}, max_steps=9
    )
    assert agent.tools == []
    assert agent.instructions == ["Be dry."]
    assert agent.max_steps == 9


def test_a_missing_prompt_variable_is_named() -> None:
    with pytest.raises(InvalidInput, match="Writer: tone: Field required"):
        Writer.build(ScriptedLlm())


def test_values_of_variables_are_not_read_as_placeholders() -> None:
    assert "Write {words}, at most 50" in Writer.system_prompt({"tone": "{words}"})


def test_without_prompt_input_braces_stay_text() -> None:
    assert Plain.system_prompt() == "Keep {braces}."


def test_the_default_model_is_only_looked_up_when_it_is_asked() -> None:
    assert Plain.build().model_name == "scripted:somewhere:llm"


def test_a_design_without_a_model_says_what_to_pass() -> None:
    with pytest.raises(ConfigurationError, match="Writer has no DEFAULT_MODEL"):
        Writer.build(variables={"tone": "x"})


def test_tools_that_come_first_are_declared_and_hold_for_those_that_replace_them() -> None:
    @tool
    def look() -> str:
        return "seen"

    @tool
    def smell() -> str:
        return "roses"

    class Careful(Plain):
        TOOLS = [look, smell]
        FIRST_TOOLS = ["look", "smell"]

    assert Careful.build(ScriptedLlm()).first_tools == {"look", "smell"}
    assert Careful.build(ScriptedLlm(), tools=[smell]).first_tools == {"smell"}
    assert Careful.build(ScriptedLlm(), first_tools=[]).first_tools == frozenset()

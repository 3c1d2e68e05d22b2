"""Final answers of a promised type: by the provider, by the final_answer tool, corrected if wrong."""

import copy
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel, Field

from agency.agent import Agent, Message, RunStatus, ToolCall, ToolDefinitionError, tool
from agency.agent.llm import output_schema
from agency.agent.output import OutputContract
from agency.agent.testing import ScriptedLlm, call


class Line(BaseModel):
    name: str
    amount: float


class Invoice(BaseModel):
    """An invoice as it was read."""

    number: str
    lines: list[Line] = Field(default_factory=list[Line])


@tool
def look() -> str:
    """Look."""
    return "seen"


def test_a_final_answer_call_gives_a_validated_instance() -> None:
    llm = ScriptedLlm(call("final_answer", number="7", lines=[{"name": "a", "amount": "2.5"}]))
    result = Agent("clerk", llm, output_type=Invoice).run("read")
    assert result.output == Invoice(number="7", lines=[Line(name="a", amount=2.5)])
    assert (result.status, result.stop_reason) == (RunStatus.COMPLETED, "final_answer")
    spec = llm.requests[0].tools[-1]
    assert spec.name == "final_answer"
    assert set(spec.parameters["$defs"]) == {"Line"}
    assert llm.requests[0].output_schema is None


def test_an_invalid_final_answer_goes_back_with_the_field() -> None:
    llm = ScriptedLlm(call("final_answer"), call("final_answer", number="7"))
    result = Agent("clerk", llm, output_type=Invoice).run("read")
    assert result.output == Invoice(number="7")
    (correction,) = result.context.events[2].tool_results
    assert correction.status == "error"
    assert "number: Field required" in correction.content


def test_invalid_final_answers_use_up_the_step_budget() -> None:
    llm = ScriptedLlm(call("final_answer"), loop=True)
    result = Agent("clerk", llm, output_type=Invoice, max_steps=3).run("read")
    assert (result.status, result.output) == (RunStatus.MAX_STEPS, None)
    assert len(llm.requests) == 3


def test_calls_beside_final_answer_are_not_executed_and_answered_skipped() -> None:
    ran: list[int] = []

    @tool
    def mark() -> None:
        ran.append(1)

    llm = ScriptedLlm([call("mark"), call("final_answer", number="7")])
    result = Agent("clerk", llm, tools=[mark], output_type=Invoice).run("read")
    skipped, accepted = result.context.events[-1].tool_results
    assert not ran
    assert skipped.content.startswith("skipped")
    assert accepted.content == "accepted"


def test_of_two_final_answers_the_first_valid_one_counts() -> None:
    [call("final_answer", "1"), call("final_answer", "2", number="b"), call("final_answer", "3")]
    llm = ScriptedLlm(
        [call("final_answer", "1"), call("final_answer", "2", number="b"), call("final_answer", "3")]
    )
    result = Agent("clerk", llm, output_type=Invoice).run("read")
    assert result.output == Invoice(number="b")
    assert len(result.context.events[-1].tool_results) == 3


def test_the_history_after_a_final_answer_is_fit_for_the_next_turn() -> None:
    llm = ScriptedLlm(call("final_answer", number="7"), call("final_answer", number="8"))
    agent = Agent("clerk", llm, output_type=Invoice)
    agent.run("again", agent.run("read").context)
    assert [item.type for item in llm.requests[1].contents] == [
        "message",
        "tool_call",
        "tool_result",
        "message",
    ]


def test_broken_arguments_of_final_answer_are_corrected() -> None:
    broken = ToolCall(tool_call_id="1", name="final_answer", invalid='{"number": "7')
    llm = ScriptedLlm(broken, call("final_answer", number="7"))
    assert Agent("clerk", llm, output_type=Invoice).run("read").output == Invoice(number="7")


def test_a_native_provider_gets_the_schema_and_its_text_is_validated() -> None:
    llm = ScriptedLlm('{"number": "7"}', output_mode="native")
    result = Agent("clerk", llm, output_type=Invoice).run("read")
    assert result.output == Invoice(number="7")
    schema = llm.requests[0].output_schema
    assert schema is not None
    assert (schema.name, schema.description) == ("Invoice", "An invoice as it was read.")
    assert llm.requests[0].tools == []


@pytest.mark.parametrize("mode", ["native", "tool"])
@pytest.mark.parametrize("text", ["not json", '{"number": 1, ', "[]", "null", '{"numbr": "7"}'])
def test_an_invalid_text_goes_back_as_a_correction(mode: str, text: str) -> None:
    llm = ScriptedLlm(text, '{"number": "7"}', output_mode=mode)
    assert Agent("clerk", llm, output_type=Invoice).run("read").output == Invoice(number="7")
    correction = llm.requests[1].contents[-1]
    assert isinstance(correction, Message)
    assert correction.content.startswith("Your answer does not have the required shape:")


def test_a_fenced_text_is_read() -> None:
    llm = ScriptedLlm('```json\n{"number": "7"}\n```')
    assert Agent("clerk", llm, output_type=Invoice).run("read").output == Invoice(number="7")


class Size(Enum):
    SMALL = "s"


@pytest.mark.parametrize(
    ("kind", "value", "output"),
    [
        (int, 0, 0),
        (str, "", ""),
        (bool, False, False),
        (list[int], [], []),
        (Line | None, None, None),
        (Size, "s", Size.SMALL),
        (dict[str, Line], {"a": {"name": "x", "amount": 1}}, {"a": Line(name="x", amount=1)}),
    ],
)
def test_any_type_travels_as_value_and_falsy_outputs_are_outputs(kind: Any, value: Any, output: Any) -> None:
    result = Agent("clerk", ScriptedLlm(call("final_answer", value=value)), output_type=kind).run("go")
    assert (result.output, result.status) == (output, RunStatus.COMPLETED)


def test_a_bare_value_is_read_from_text() -> None:
    assert Agent("clerk", ScriptedLlm("[1, 2]"), output_type=list[int]).run("go").output == [1, 2]


def test_the_last_step_offers_only_final_answer() -> None:
    llm = ScriptedLlm(call("look"), call("final_answer", number="7"))
    Agent("clerk", llm, tools=[look], output_type=Invoice, max_steps=2).run("go")
    assert [[spec.name for spec in request.tools] for request in llm.requests] == [
        ["look", "final_answer"],
        ["final_answer"],
    ]


def test_a_tool_called_final_answer_is_refused_beside_an_output_type() -> None:
    with pytest.raises(ToolDefinitionError, match="final_answer"):
        Agent("clerk", ScriptedLlm(), tools=[tool(name="final_answer")(lambda: 1)], output_type=Invoice)


def test_without_an_output_type_final_answer_is_a_tool_like_any_other() -> None:
    mine = tool(name="final_answer", return_direct=True)(lambda: "mine")
    assert Agent("clerk", ScriptedLlm(call("final_answer")), tools=[mine]).run("go").output == "mine"


def test_a_type_without_schema_is_refused() -> None:
    with pytest.raises(Exception, match="output_type"):
        OutputContract(object())


def test_what_a_client_does_to_a_schema_is_not_seen_by_the_next_request() -> None:
    first = output_schema(Invoice)
    kept = copy.deepcopy(first.schema)
    first.schema["properties"].clear()
    assert output_schema(Invoice).schema == kept == Invoice.model_json_schema()

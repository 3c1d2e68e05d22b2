"""What is kept of a model call: answers as they may be stored, and enough to say what was asked."""

from agency.agent import Agent, LlmResponse, Message, ProviderPart, ToolCall, ToolResult, Usage, tool
from agency.agent.testing import ScriptedLlm, call


@tool(effect="read")
def look() -> str:
    """Look."""
    return "seen"


def test_what_a_provider_wants_back_is_kept_verbatim_unless_it_cannot_be_stored() -> None:
    good = ProviderPart(provider="x", data={"signature": "ü+/=", "n": [1, 2.5, None]})
    bad = ProviderPart(provider="x", data={"a\x00": "b\ud800"})
    answer = LlmResponse([good, bad, Message(role="assistant", content="done")])
    result = Agent("clerk", ScriptedLlm(answer)).run("go")
    kept = result.context.events[-1].content
    assert kept[0] == good
    assert kept[1] == ProviderPart(provider="x", data={"a": "b\ufffd"})


def test_a_model_cannot_answer_its_own_calls() -> None:
    forged = ToolResult(tool_call_id="1", name="look", status="success", content="forged")
    llm = ScriptedLlm([ToolCall(tool_call_id="1", name="look"), forged], "done")
    result = Agent("clerk", llm, tools=[look]).run("go")
    results = [one for event in result.context.events for one in event.tool_results]
    assert [one.content for one in results] == ["seen"]


def test_an_answer_that_a_client_gives_again_is_left_as_it_was() -> None:
    answer = LlmResponse([call("look", "same")])
    Agent("clerk", ScriptedLlm(answer, answer, answer, "done"), tools=[look]).run("go")
    assert answer.tool_calls[0].tool_call_id == "same"


def test_the_record_of_a_call_names_model_reason_duration_and_cached_tokens() -> None:
    said = Message(role="assistant", content="done")
    usage = Usage(input_tokens=100, output_tokens=5, cached_tokens=90)
    result = Agent("clerk", ScriptedLlm(LlmResponse([said], usage, "stop", "model-7"))).run("go")
    event = result.context.events[-1]
    assert event.call is not None
    assert (event.call["model"], event.call["finish_reason"]) == ("model-7", "stop")
    assert event.call["duration"] >= 0
    assert event.call["request"].keys() == {"items", "of", "digest"}
    assert event.usage == Usage(model_calls=1, input_tokens=100, output_tokens=5, cached_tokens=90)

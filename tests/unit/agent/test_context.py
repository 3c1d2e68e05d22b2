"""A context as JSON: what is kept, what is refused, and a run that goes on in another process."""

import json
import subprocess
import sys
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel

from agency.agent import (
    Agent,
    ExecutionContext,
    FilePart,
    Message,
    ModelRefused,
    ProviderPart,
    RunStatus,
    tool,
)
from agency.agent.testing import ScriptedLlm, call
from agency.errors import InvalidInput


class Answer(BaseModel):
    day: date
    parts: list[str]


@tool(effect="read")
def note(text: str, context: ExecutionContext) -> str:
    context.state["note"] = text
    return text


def test_a_finished_context_comes_back_as_it_was() -> None:
    llm = ScriptedLlm(call("note", text="ü\u2028"), call("final_answer", day="2026-11-30", parts=["a"]))
    context = Agent("clerk", llm, tools=[note], output_type=Answer).run("go").context
    loaded = ExecutionContext.from_json(context.to_json(), Answer)
    assert loaded == context
    assert isinstance(loaded.final_result, Answer)


@pytest.mark.parametrize("output", [0, "", False, [], {}, 1.5, "text"])
def test_falsy_and_plain_results_stay_what_they_are(output: Any) -> None:
    loaded = ExecutionContext.from_json(ExecutionContext(final_result=output).to_json())
    assert (loaded.final_result, type(loaded.final_result)) == (output, type(output))


def test_failed_calls_files_and_provider_parts_are_kept() -> None:
    context = ExecutionContext()
    llm = ScriptedLlm(ProviderPart(provider="p", data={"signature": "x"}), ModelRefused("no"))
    content = [Message(role="user", content="see"), FilePart(media_type="image/png", uri="file:1")]
    assert Agent("clerk", llm).run(content, context).status is RunStatus.FAILED
    assert ExecutionContext.from_json(context.to_json()) == context


def test_texts_that_no_encoding_knows_do_not_break_the_json() -> None:
    context = ExecutionContext(state={"a\ud800": "b\x00"}, final_result="c\ud800")
    stored = context.to_json()
    stored.encode()
    assert ExecutionContext.from_json(stored).state == {"a\ufffd": "b"}


def test_a_state_that_is_not_json_is_refused_by_key() -> None:
    with pytest.raises(InvalidInput, match=r"context.state\['when'\]"):
        ExecutionContext(state={"when": date(2026, 11, 30)}).to_json()


def test_a_result_that_is_not_json_is_refused() -> None:
    with pytest.raises(InvalidInput, match="context.final_result is not JSON"):
        ExecutionContext(final_result=object()).to_json()


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"version": 2}, "version"),
        ({"events": [{"author": "user"}]}, "events.0.execution_id"),
        ({"current_step": "many"}, "current_step"),
        ({"state": []}, "state"),
    ],
)
def test_json_that_is_no_context_is_refused_by_field(change: dict[str, Any], path: str) -> None:
    stored = json.loads(ExecutionContext().to_json()) | change
    with pytest.raises(InvalidInput) as raised:
        ExecutionContext.from_json(json.dumps(stored))
    assert raised.value.errors[0]["path"] == path


def test_text_that_is_no_json_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not a stored context"):
        ExecutionContext.from_json("{")


ELSEWHERE = """
import sys
from agency.agent import Confirmation, ExecutionContext
from tests.unit.agent.test_context import clerk

context = ExecutionContext.from_json(sys.stdin.read())
clerk(*ANSWERS).run(context=context, confirmations=[Confirmation("w", "approve", {"text": "b"})])
print(context.to_json())
"""


@tool(requires_confirmation=True)
def write(text: str, context: ExecutionContext) -> str:
    context.state.setdefault("written", []).append(text)
    return f"wrote {text}"


def clerk(*answers: Any) -> Agent:
    return Agent("clerk", ScriptedLlm(*answers), tools=[note, write])


def told(context: ExecutionContext) -> list[Any]:
    return [(event.author, event.step, event.content, event.usage) for event in context.events]


def test_a_paused_run_goes_on_in_another_process_as_it_would_have_here() -> None:
    from agency.agent import Confirmation

    first = [call("note", "n", text="x"), call("write", "w", text="a")]
    paused = clerk(first).run("go").context
    rest = '(call("note", "n2", text="y"), "done")'
    code = ELSEWHERE.replace("*ANSWERS", f"*{rest}").replace(
        "import sys\n", "import sys\nfrom agency.agent.testing import call\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=paused.to_json(), capture_output=True, text=True, check=True
    )
    elsewhere = ExecutionContext.from_json(done.stdout)
    confirmation = Confirmation("w", "approve", {"text": "b"})
    here = (
        clerk(call("note", "n2", text="y"), "done").run(context=paused, confirmations=[confirmation]).context
    )
    assert elsewhere.final_result == "done"
    assert elsewhere.state == {"note": "y", "written": ["b"]}
    assert (told(elsewhere), elsewhere.state, elsewhere.current_step) == (
        told(here),
        here.state,
        here.current_step,
    )


@pytest.mark.parametrize("state", [{1: "a"}, {"a": {1: 2}}, {"a": [{"b": {None: 1}}]}])
def test_keys_that_would_come_back_as_text_are_refused_by_name(state: Any):
    with pytest.raises(InvalidInput, match=r"context\.state\[.*\] is not JSON: a key in it is no text"):
        ExecutionContext(state=state).to_json()

"""The trace: exact in plain text, whole where something failed, safe on a terminal."""

import io
import re
from datetime import UTC, datetime, timedelta

from agency.agent import (
    Agent,
    Event,
    EventError,
    ExecutionContext,
    FilePart,
    Message,
    ProviderPart,
    ToolCall,
    ToolResult,
    Usage,
    display_trace,
)
from agency.agent.testing import ScriptedLlm, call

START = datetime(2026, 3, 12, 9, 0, tzinfo=UTC)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def sample() -> ExecutionContext:
    context = ExecutionContext(execution_id="e1")
    rows: list[tuple[float, str, int, list[object], dict[str, object]]] = [
        (0, "user", 0, [Message(role="user", content="1 + 2?\nQuickly.")], {}),
        (
            0.9, "clerk", 0,
            [
                ToolCall(tool_call_id="c1", name="add", arguments={"a": 1, "b": "two"}),
                ToolCall(tool_call_id="c2", name="log", invalid='{"a'),
            ],
            {
                "usage": Usage(
                    model_calls=1, input_tokens=1200, output_tokens=15, cached_tokens=1000, cost=0.01
                ),
                "call": {"model": "m1", "finish_reason": "tool_calls", "duration": 0.85},
            },
        ),
        (
            1, "clerk", 0,
            [
                ToolResult(tool_call_id="c1", name="add", status="success", content={"sum": 3}),
                ToolResult(tool_call_id="c2", name="log", status="error", content="not JSON"),
            ],
            {"usage": Usage(tool_calls=2)},
        ),
        (
            1.5, "clerk", 1, [],
            {
                "error": EventError(code="model_unavailable", message="busy"),
                "usage": Usage(model_calls=1),
            },
        ),
        (
            2, "clerk", 1, [ProviderPart(provider="x", data={}), Message(role="assistant", content="three")],
            {
                "usage": Usage(model_calls=1, input_tokens=1300, output_tokens=2),
                "call": {"model": "m1", "finish_reason": "stop", "duration": 0.4},
            },
        ),
    ]  # fmt: skip
    for seconds, author, step, content, more in rows:
        context.add_event(
            Event.model_validate(
                {
                    "execution_id": "e1",
                    "timestamp": START + timedelta(seconds=seconds),
                    "author": author,
                    "step": step,
                    "content": content,
                    **more,
                }
            )
        )
    context.current_step = 2
    context.final_result = "three"
    return context


PLAIN = """\
Execution e1 · 5 events · 2 steps (limit 10 a turn) · finished

Turn 1
├─ #1 user · +0.00 s
│     user: 1 + 2?
│     Quickly.
├─ Step 0 · 1 model call · 2 tool calls · 1,200 tokens in (1,000 cached), 15 out · $0.0100 · model 0.85 s
│  ├─ #2 clerk · +0.90 s · m1 · tool_calls
│  │     → add(a=1, b=two) · c1
│  │     → log({"a) · broken arguments · c2
│  └─ #3 clerk · +1.00 s
│        ✓ add: {"sum": 3} · success · c1
│        ✗ log: not JSON · error · c2
└─ Step 1 · 2 model calls · 1,300 tokens in, 2 out · model 0.40 s
   ├─ #4 clerk · +1.50 s
   │     ✗ model_unavailable: busy
   └─ #5 clerk · +2.00 s · m1 · stop
         kept for x
         assistant: three

Total: 3 model calls · 2 tool calls · 2,500 tokens in (1,000 cached), 17 out · $0.0100 · 2.00 s
Final result: three
"""


def test_the_plain_trace_is_exact() -> None:
    out = io.StringIO()
    assert display_trace(sample(), file=out, max_steps=10) == PLAIN
    assert out.getvalue() == PLAIN


def test_a_terminal_gets_the_same_text_in_colour_and_errors_in_red() -> None:
    out = Terminal()
    display_trace(sample(), file=out, max_steps=10)
    shown = out.getvalue()
    assert "\x1b[1;31m✗ model_unavailable: busy" in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert [line.rstrip() for line in plain.splitlines()] == PLAIN.splitlines()


def test_long_values_are_cut_with_their_length_but_errors_are_whole() -> None:
    context = ExecutionContext()
    long = "x" * 5_000
    for status in ("success", "error"):
        result = ToolResult.model_validate(
            {"tool_call_id": "1", "name": "dump", "status": status, "content": long}
        )
        context.add_event(Event(execution_id="e", author="clerk", content=[result]))
    text = display_trace(context, file=io.StringIO())
    good, bad = (line for line in text.splitlines() if "dump" in line)
    assert long in bad
    assert "… [5,000 characters]" in good
    assert len(good) < 800


def test_a_half_finished_context_shows_calls_without_result() -> None:
    context = ExecutionContext()
    call = ToolCall(tool_call_id="1", name="add")
    context.add_event(Event(execution_id="e", author="clerk", content=[call]))
    text = display_trace(context, file=io.StringIO())
    assert "→ add() · 1 · no result" in text
    assert "not finished" in text


def test_an_empty_context_has_a_trace() -> None:
    text = display_trace(ExecutionContext(execution_id="e"), file=io.StringIO())
    assert text == "Execution e · 0 events · 0 steps · not finished\n\nTotal: nothing used\n"


def test_control_characters_of_a_tool_cannot_drive_the_terminal() -> None:
    context = ExecutionContext()
    evil = ToolResult(tool_call_id="1", name="look", status="success", content="\x1b[2Jgone\x07")
    context.add_event(Event(execution_id="e", author="clerk", content=[evil]))
    out = Terminal()
    display_trace(context, file=out)
    assert "\x1b[2J" not in out.getvalue()
    assert "␛[2Jgone␇" in out.getvalue()


def test_a_file_is_named() -> None:
    context = ExecutionContext()
    part = FilePart(media_type="image/png", uri="file:x", name="plan.png")
    context.add_event(Event(execution_id="e", author="user", content=[part]))
    assert "file: plan.png (image/png)" in display_trace(context, file=io.StringIO())


def test_a_stream_that_cannot_encode_the_signs_is_no_obstacle() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
    display_trace(sample(), file=out)
    assert b"1,300 tokens in, 2 out" in raw.getvalue()


def test_two_turns_are_told_apart() -> None:
    context = sample()
    context.add_event(
        Event(
            execution_id="e1", timestamp=START, author="user", content=[Message(role="user", content="more")]
        )
    )
    text = display_trace(context, file=io.StringIO())
    assert text.count("\nTurn ") == 2


INSIDE = """\
├─ Step 0 · 1 model call · 1 tool call · 12 tokens in, 5 out · model 0.00 s
│  ├─ #2 boss · +0.00 s · scripted:test · tool_calls
│  │     → scout(task=look) · c
│  │  └─ Inside scout · c
│  │     ├─ #3 boss · +0.00 s
│  │     │     user: look
│  │     └─ Step 0 · 1 model call · 12 tokens in, 5 out · model 0.00 s
│  │        └─ #4 scout · +0.00 s · scripted:test · stop
│  │              assistant: seen
│  └─ #5 boss · +0.00 s
│        ✓ scout: seen · success · c
"""


def test_a_run_inside_a_call_is_drawn_under_the_call() -> None:
    scout = Agent("scout", ScriptedLlm("seen")).as_tool("Looks.")
    llm = ScriptedLlm(call("scout", "c", task="look"), "done")
    context = Agent("boss", llm, tools=[scout]).run("go").context
    for event in context.events:
        event.timestamp = START
        event.call = event.call and {**event.call, "duration": 0.001}
    assert INSIDE in display_trace(context, file=io.StringIO())

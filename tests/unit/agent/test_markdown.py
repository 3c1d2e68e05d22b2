"""A context as Markdown: whole, readable, and safe from what models and tools said."""

from datetime import UTC, datetime, timedelta

from agency.agent import (
    Event,
    EventError,
    ExecutionContext,
    FilePart,
    Message,
    ProviderPart,
    ToolCall,
    ToolResult,
    Usage,
)

START = datetime(2026, 3, 12, 9, 0, tzinfo=UTC)
EXPECTED = """\
### Execution `e1`: 3 events, 1 step, not finished

**Event 1** by `user` · step 0 · +0.00 s

user:

```text
1 + 2?
```

**Event 2** by `clerk` · step 0 · +0.50 s · `m1`, tool_calls · 1 model call · 10 tokens in, 5 out

→ `add` (`c1`):

```json
{
  "a": 1
}
```

→ `log` (`c2`, broken arguments):

```text
{"a
```

**Event 3** by `clerk` · step 0 · +1.00 s · 1 tool call

✓ `add` (`c1`):

```text
3
```

✗ `log` (`c2`):

```text
not JSON
```

**Total:** 1 model call · 1 tool call · 10 tokens in, 5 out
"""


def event(seconds: float, *content: object, author: str = "clerk", **more: object) -> Event:
    moment = START + timedelta(seconds=seconds)
    row = {"execution_id": "e1", "timestamp": moment, "author": author, "content": list(content), **more}
    return Event.model_validate(row)


def told(*events: Event, **more: object) -> str:
    context = ExecutionContext("e1", list(events))
    for name, value in more.items():
        setattr(context, name, value)
    return context.to_markdown()


def test_a_record_in_markdown_has_every_fact() -> None:
    calls = (
        ToolCall(tool_call_id="c1", name="add", arguments={"a": 1}),
        ToolCall(tool_call_id="c2", name="log", invalid='{"a'),
    )
    results = (
        ToolResult(tool_call_id="c1", name="add", status="success", content=3),
        ToolResult(tool_call_id="c2", name="log", status="error", content="not JSON"),
    )
    usage = Usage(model_calls=1, input_tokens=10, output_tokens=5)
    call = {"model": "m1", "finish_reason": "tool_calls"}
    text = told(
        event(0, Message(role="user", content="1 + 2?"), author="user"),
        event(0.5, *calls, usage=usage, call=call),
        event(1, *results, usage=Usage(tool_calls=1)),
        current_step=1,
    )
    assert text == EXPECTED


def test_what_was_said_cannot_leave_its_fence() -> None:
    text = told(event(0, Message(role="assistant", content="```\n# heading @somebody\n````")))
    assert "\n`````text\n```\n# heading @somebody\n````\n`````\n" in text


def test_a_name_with_backticks_stays_one_piece_of_code() -> None:
    assert "by `` `odd`name` ``" in told(event(0, author="`odd`name`"))


def test_an_error_a_file_and_an_inner_run_are_named() -> None:
    part = ProviderPart(provider="acme", data={})
    text = told(
        event(0, FilePart(media_type="image/png", uri="file.png"), part),
        event(1, error=EventError(code="model_unavailable", message="busy"), call={"within": ["c1", "c2"]}),
    )
    assert "file `file.png` (`image/png`)" in text
    assert "kept for `acme`" in text
    assert "inside `c1 › c2`" in text
    assert "✗ `model_unavailable`\n\n```text\nbusy\n```" in text


def test_a_long_text_is_cut_with_a_note() -> None:
    text = told(event(0, Message(role="user", content="x" * 5_000)))
    assert len(text) < 2_500
    assert "5,000 characters in all" in text


def test_a_final_result_closes_the_record_and_nothing_at_all_is_a_record() -> None:
    assert told(final_result=0).endswith("**Total:** nothing used\n\n**Final result:**\n\n```text\n0\n```\n")
    assert told() == "### Execution `e1`: 0 events, 0 steps, not finished\n\n**Total:** nothing used\n"

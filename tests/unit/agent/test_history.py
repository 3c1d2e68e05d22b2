"""The index over a context: contents in an order that providers accept, open calls, counts of the turn."""

from typing import Any

from agency.agent import ContentItem, Event, ExecutionContext, Message, ToolCall, ToolResult, Usage
from agency.agent.history import history_of


def said(role: Any, text: str) -> Message:
    return Message(role=role, content=text)


def called(number: int, name: str = "add") -> ToolCall:
    return ToolCall(tool_call_id=str(number), name=name)


def answered(number: int) -> ToolResult:
    return ToolResult(tool_call_id=str(number), name="add", status="success", content=number)


def context_of(*events: tuple[str, list[ContentItem]]) -> ExecutionContext:
    context = ExecutionContext()
    for author, content in events:
        add(context, author, *content)
    return context


def add(context: ExecutionContext, author: str, *content: ContentItem, usage: Usage | None = None) -> None:
    step = context.current_step
    context.add_event(
        Event(execution_id=context.execution_id, author=author, content=list(content), step=step, usage=usage)
    )


def kinds(context: ExecutionContext) -> list[str]:
    return [
        f"{item.type}:{item.tool_call_id}" if isinstance(item, ToolCall | ToolResult) else item.type
        for item in history_of(context).contents
    ]


def test_contents_grow_with_the_events() -> None:
    context = context_of(("user", [said("user", "go")]))
    history = history_of(context)
    assert kinds(context) == ["message"]
    add(context, "clerk", called(1))
    assert history_of(context) is history
    assert kinds(context) == ["message", "tool_call:1"]
    assert list(history.open_calls) == ["1"]


def test_a_late_result_is_placed_behind_its_calls_and_before_what_came_after() -> None:
    context = context_of(
        ("user", [said("user", "go")]),
        ("clerk", [called(1), called(2)]),
        ("user", [said("user", "well?")]),
        ("clerk", [answered(2), answered(1)]),
    )
    assert kinds(context) == [
        "message",
        "tool_call:1",
        "tool_call:2",
        "tool_result:2",
        "tool_result:1",
        "message",
    ]
    assert history_of(context).turn_starts == [0, 5]


def test_a_result_for_an_older_call_finds_its_place() -> None:
    context = context_of(
        ("user", [said("user", "go")]),
        ("clerk", [called(1)]),
        ("user", [said("user", "again")]),
        ("clerk", [called(2)]),
        ("clerk", [answered(1)]),
        ("clerk", [answered(2)]),
    )
    assert kinds(context) == [
        "message", "tool_call:1", "tool_result:1", "message", "tool_call:2", "tool_result:2",
    ]  # fmt: skip


def test_an_orphan_and_a_second_result_stay_out_of_the_request() -> None:
    context = context_of(
        ("user", [said("user", "go")]),
        ("clerk", [answered(9)]),
        ("clerk", [called(1)]),
        ("clerk", [answered(1)]),
        ("clerk", [answered(1)]),
    )
    assert kinds(context) == ["message", "tool_call:1", "tool_result:1"]
    assert len(context.events) == 5


def test_empty_messages_stay_out_of_the_request() -> None:
    context = context_of(("user", [said("user", "go")]), ("clerk", [said("assistant", "")]))
    assert kinds(context) == ["message"]


def test_turns_are_counted_by_user_events_and_usage_by_turn() -> None:
    context = context_of(("user", [said("user", "one")]))
    add(context, "clerk", said("assistant", "a"), usage=Usage(model_calls=1, input_tokens=5, cost=0.1))
    context.increment_step()
    add(context, "user", said("user", "two"))
    add(context, "clerk", said("assistant", "b"), usage=Usage(model_calls=1, input_tokens=7))
    history = history_of(context)
    assert (history.turn, history.turn_step) == (2, 1)
    assert history.usage == Usage(model_calls=1, input_tokens=7)


def test_steps_are_marked_where_their_calls_begin_and_the_task_where_it_ends() -> None:
    context = context_of(
        ("user", [said("user", "go")]),
        ("clerk", [said("assistant", "I add."), called(1)]),
        ("clerk", [answered(1)]),
        ("clerk", [called(2)]),
    )
    assert history_of(context).step_starts == [1, 4]
    assert history_of(context).task_end == 1


def test_identical_calls_are_counted_in_the_turn_only() -> None:
    context = context_of(
        ("user", [said("user", "go")]), ("clerk", [called(1), called(2, "other"), called(3)])
    )
    assert history_of(context).times_called(called(9)) == 2
    add(context, "user", said("user", "again"))
    assert history_of(context).times_called(called(9)) == 0


def test_a_record_that_was_replaced_is_read_anew() -> None:
    context = context_of(("user", [said("user", "go")]), ("clerk", [called(1)]))
    assert history_of(context).open_calls
    context.events = context.events[:1]
    assert not history_of(context).open_calls
    assert history_of(context).turn == 1


def test_two_contexts_never_share_an_index() -> None:
    indexes = {id(history_of(context)) for context in [ExecutionContext() for _ in range(5)]}
    assert len(indexes) == 5

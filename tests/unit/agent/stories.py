"""Histories to select from: turns of steps, each of which calls a tool once."""

from agency.agent import ContentItem, Event, ExecutionContext, LlmRequest, Message, ToolCall, ToolResult
from agency.agent.prompt import RequestBuilder
from agency.agent.text import as_text


def add(context: ExecutionContext, author: str, *content: ContentItem) -> None:
    event = Event(
        execution_id=context.execution_id, author=author, content=list(content), step=context.current_step
    )
    context.add_event(event)


def add_step(context: ExecutionContext, result: object = "ok") -> None:
    name = f"c{context.current_step}"
    add(context, "clerk", ToolCall(tool_call_id=name, name="look"))
    add(context, "clerk", ToolResult(tool_call_id=name, name="look", status="success", content=result))
    context.increment_step()


def add_turn(context: ExecutionContext, name: str, steps: int = 0, result: object = "ok") -> None:
    """A question `q-name`, so many steps, and the answer `a-name`."""
    add(context, "user", Message(role="user", content=f"q-{name}"))
    for _ in range(steps):
        add_step(context, result)
    add(context, "clerk", Message(role="assistant", content=f"a-{name}"))
    context.increment_step()


def story(turns: int, steps: int = 0, result: object = "ok") -> ExecutionContext:
    """Turns 1 to `turns`, and the question `q-now`."""
    context = ExecutionContext(execution_id="e")
    for turn in range(1, turns + 1):
        add_turn(context, str(turn), steps, result)
    add(context, "user", Message(role="user", content="q-now"))
    return context


def built(builder: RequestBuilder, context: ExecutionContext) -> LlmRequest:
    return builder.build(context, LlmRequest())


def shown(builder: RequestBuilder, context: ExecutionContext) -> list[str]:
    """What a request says, in short: texts, and calls and results by id."""
    return [_short(item) for item in built(builder, context).contents]


def _short(item: ContentItem) -> str:
    if isinstance(item, Message):
        return item.content
    if isinstance(item, ToolCall):
        return f">{item.tool_call_id}"
    assert isinstance(item, ToolResult)
    return f"<{item.tool_call_id}:{as_text(item.content)}"

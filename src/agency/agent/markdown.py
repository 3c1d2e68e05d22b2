"""A context as Markdown, to be pasted into an issue: the facts of the trace, with texts in fences.

Inside a fence nothing that a model or tool said becomes a heading, a mention or a link.
"""

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from agency.agent.events import ContentItem, Event
from agency.agent.sums import costs, counted, lasted, usage_of
from agency.agent.text import as_text, cut

if TYPE_CHECKING:
    from agency.agent.context import ExecutionContext

LONGEST_VALUE = 2_000


def markdown(context: "ExecutionContext") -> str:
    """The whole record of a context; texts are cut to 2,000 characters, with a note."""
    return "\n\n".join(_blocks(context)) + "\n"


def _blocks(context: "ExecutionContext") -> Iterator[str]:
    done = "not finished" if context.final_result is None else "finished"
    size = f"{counted(len(context.events), 'event')}, {counted(context.current_step, 'step')}"
    yield f"### Execution {_code(context.execution_id)}: {size}, {done}"
    for number, event in enumerate(context.events, 1):
        yield _headline(number, event, context.events[0])
        for item in event.content:
            yield from _item(item)
        if event.error is not None:
            yield f"✗ {_code(event.error.code)}"
            yield _fenced(event.error.message)
    yield f"**Total:** {costs(usage_of(context.events)) or 'nothing used'}"
    if context.final_result is not None:
        yield "**Final result:**"
        yield _value(context.final_result)


def _headline(number: int, event: Event, first: Event) -> str:
    elapsed = lasted((event.timestamp - first.timestamp).total_seconds())
    told = [f"**Event {number}** by {_code(event.author)}", f"step {event.step}", f"+{elapsed}"]
    if event.within:
        told.insert(1, f"inside {_code(' › '.join(event.within))}")
    if event.call and event.call.get("beside"):
        told.insert(1, f"for {_code(str(event.call['beside']))}")
    if event.call and event.call.get("finish_reason"):
        told.append(f"{_code(str(event.call.get('model') or 'model'))}, {event.call['finish_reason']}")
    if event.usage is not None and (cost := costs(event.usage)):
        told.append(cost)
    return " · ".join(told)


def _item(item: ContentItem) -> Iterator[str]:
    if item.type == "message":
        yield f"{item.role}:"
        yield _fenced(item.content)
    elif item.type == "tool_call":
        broken = "" if item.invalid is None else ", broken arguments"
        yield f"→ {_code(item.name)} ({_code(item.tool_call_id)}{broken}):"
        yield _value(item.arguments) if item.invalid is None else _fenced(item.invalid)
    elif item.type == "tool_result":
        yield f"{'✓' if item.status == 'success' else '✗'} {_code(item.name)} ({_code(item.tool_call_id)}):"
        yield _value(item.content)
    elif item.type == "file":
        yield f"file {_code(item.name or item.uri)} ({_code(item.media_type)})"
    else:
        yield f"kept for {_code(item.provider)}"


def _value(value: object) -> str:
    if isinstance(value, dict | list):
        return _fenced(json.dumps(value, ensure_ascii=False, indent=2, default=str), "json")
    return _fenced(as_text(value) if isinstance(value, str | int | float | bool | None) else repr(value))


def _fenced(text: str, language: str = "text") -> str:
    """The text between fences that are longer than any run of backticks in it."""
    text = cut(text, LONGEST_VALUE)
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall(r"`+", text))])
    return f"{fence}{language}\n{text}\n{fence}"


def _code(text: str) -> str:
    """A short text as code in a line, whatever is in it."""
    plain = " ".join(text.split()) or " "
    ticks = "`" * (1 + max((len(run) for run in re.findall(r"`+", plain)), default=0))
    space = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{ticks}{space}{plain}{space}{ticks}"

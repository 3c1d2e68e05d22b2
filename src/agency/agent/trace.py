"""A readable trace of a context: turns, steps, events, what each cost, and every error in full.

Coloured on a terminal, the same in plain text elsewhere; works on a failed or half-finished context.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import IO

from agency.agent.context import ExecutionContext
from agency.agent.events import SAID_BY, ContentItem, Event, FilePart, Message, ToolCall, ToolResult
from agency.agent.history import USER
from agency.agent.sums import costs, counted, lasted, usage_of
from agency.agent.text import as_text

LONGEST_VALUE = 600
_VISIBLE = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n\r"} | {0x7F: "␡"}
_ROLE_STYLES = {"user": "cyan", "assistant": "default", "system": "magenta"}


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line and its colour on a terminal."""

    text: str
    style: str = "default"


Line = list[Span]
Path = tuple[str, ...]


@dataclass(slots=True)
class Node:
    """A part of the tree: its own line, the text under it, its children."""

    title: Line
    body: list[Line] = field(default_factory=list[Line])
    children: list["Node"] = field(default_factory=list["Node"])


def display_trace(
    context: ExecutionContext, *, file: IO[str] | None = None, max_steps: int | None = None
) -> str:
    """Print the trace to `file` (standard output if `None`) and return it as plain text.

    `max_steps` is the agent's step limit, shown beside the count of steps.
    """
    lines = list(_lines(context, max_steps))
    text = "\n".join("".join(span.text for span in line).rstrip() for line in lines) + "\n"
    out = sys.stdout if file is None else file
    if out.isatty():
        _print_coloured(lines, out)
    else:
        encoding = getattr(out, "encoding", None) or "utf-8"
        out.write(text.encode(encoding, "replace").decode(encoding))
    return text


def _print_coloured(lines: list[Line], out: IO[str]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=out, highlight=False)
    for line in lines:
        console.print(Text.assemble(*((span.text, span.style) for span in line)), soft_wrap=True)


def _lines(context: ExecutionContext, max_steps: int | None) -> Iterator[Line]:
    yield _headline(context, max_steps)
    for turn in _turns(_view(context)):
        yield [Span("")]
        yield turn.title
        yield from _branches(turn.children, "")
    yield [Span("")]
    yield from _summary(context)


def _headline(context: ExecutionContext, max_steps: int | None) -> Line:
    limit = "" if max_steps is None else f" (limit {max_steps} a turn)"
    done = "not finished" if context.final_result is None else "finished"
    steps = counted(context.current_step, "step")
    return [
        Span("Execution ", "bold"),
        Span(context.execution_id, "bold"),
        Span(f" · {counted(len(context.events), 'event')} · {steps}{limit} · "),
        Span(done, "green" if done == "finished" else "yellow"),
    ]


@dataclass(frozen=True, slots=True)
class View:
    """A context's events with their numbers, by the calls inside which they happened."""

    start: datetime | None
    events: dict[Path, list[tuple[int, Event]]]
    answered: set[tuple[Path, str]]


def _view(context: ExecutionContext) -> View:
    view = View(context.events[0].timestamp if context.events else None, {}, set())
    for number, event in enumerate(context.events, 1):
        path = tuple(event.within)
        view.events.setdefault(path, []).append((number, event))
        view.answered.update((path, item.tool_call_id) for item in event.tool_results)
    return view


def _turns(view: View, path: Path = ()) -> list[Node]:
    turns: list[Node] = []
    step: tuple[int, Node, list[Event]] | None = None
    for number, event in view.events.get(path, ()):
        node = _event(number, event, view)
        opens = event.author == USER or bool(event.call and event.call.get("opens"))
        if opens or not turns:
            turns.append(Node([Span(f"Turn {len(turns) + 1}", "bold")]))
            step = None
        if opens:
            turns[-1].children.append(node)
            continue
        if step is None or step[0] != event.step:
            step = (event.step, Node([]), [])
            turns[-1].children.append(step[1])
        step[1].children.append(node)
        step[2].append(event)
        step[1].title = _step_title(event.step, step[2])
    return turns


def _step_title(step: int, events: list[Event]) -> Line:
    usage = usage_of(events)
    seconds = sum(event.call.get("duration") or 0.0 for event in events if event.call)
    cost = costs(usage)
    thought = f" · model {lasted(seconds)}" if seconds else ""
    return [Span(f"Step {step}", "bold"), Span(f"{' · ' if cost else ''}{cost}{thought}", "dim")]


def _event(number: int, event: Event, view: View) -> Node:
    elapsed = (event.timestamp - view.start).total_seconds() if view.start else 0.0
    title = [Span(f"#{number} ", "dim"), Span(event.author, "cyan" if event.author == USER else "blue")]
    if event.call and event.call.get("beside"):
        title.append(Span(f" · for {event.call['beside']}", "magenta"))
    if event.call and event.call.get(SAID_BY):
        title.append(Span(f" · {event.call[SAID_BY].replace('_', ' ')}", "magenta"))
    title.append(Span(f" · +{lasted(elapsed)}", "dim"))
    if event.call and event.call.get("finish_reason"):
        title.append(Span(f" · {event.call.get('model') or 'model'} · {event.call['finish_reason']}", "dim"))
    path = tuple(event.within)
    body = [line for item in event.content for line in _item(item, path, view)]
    if event.error is not None:
        body += _text(f"✗ {event.error.code}: {event.error.message}", "bold red")
    return Node(title, body, [node for call in event.tool_calls for node in _inside(call, path, view)])


def _inside(call: ToolCall, path: Path, view: View) -> Iterator[Node]:
    """The run of another agent that a call stands for."""
    turns = _turns(view, (*path, call.tool_call_id))
    if turns:
        title = [Span(f"Inside {call.name}", "bold"), Span(f" · {call.tool_call_id}", "dim")]
        yield Node(title, [], [node for turn in turns for node in turn.children])


def _item(item: ContentItem, path: Path, view: View) -> list[Line]:
    if isinstance(item, Message):
        return _text(f"{item.role}: {_cut(item.content)}", _ROLE_STYLES[item.role])
    if isinstance(item, ToolCall):
        return _call(item, (path, item.tool_call_id) in view.answered)
    if isinstance(item, ToolResult):
        return _result(item)
    if isinstance(item, FilePart):
        return [[Span(f"file: {item.name or item.uri} ({item.media_type})", "magenta")]]
    return [[Span(f"kept for {item.provider}", "dim")]]


def _call(call: ToolCall, answered: bool) -> list[Line]:
    if call.invalid is not None:
        lines = _text(f"→ {call.name}({_cut(call.invalid)})", "yellow")
        lines[-1].append(Span(" · broken arguments", "red"))
    else:
        arguments = ", ".join(f"{key}={_cut(_repr(value))}" for key, value in call.arguments.items())
        lines = _text(f"→ {call.name}({arguments})", "yellow")
    lines[-1].append(Span(f" · {call.tool_call_id}", "dim"))
    if not answered:
        lines[-1].append(Span(" · no result", "bold red"))
    return lines


def _result(result: ToolResult) -> list[Line]:
    failed = result.status == "error"
    mark, style = ("✗", "red") if failed else ("✓", "green")
    content = as_text(result.content)
    lines = _text(f"{mark} {result.name}: {content if failed else _cut(content)}", style)
    lines[-1].append(Span(f" · {result.status} · {result.tool_call_id}", "dim"))
    return lines


def _summary(context: ExecutionContext) -> Iterator[Line]:
    cost = costs(usage_of(context.events)) or "nothing used"
    last = context.events[-1].timestamp - context.events[0].timestamp if context.events else None
    took = f" · {lasted(last.total_seconds())}" if last is not None else ""
    yield [Span("Total: ", "bold"), Span(f"{cost}{took}")]
    if context.final_result is not None:
        head, *rest = _text(f"Final result: {_cut(_repr(context.final_result))}", "green")
        yield head
        yield from rest


def _branches(nodes: list[Node], guide: str) -> Iterator[Line]:
    for node in nodes:
        last = node is nodes[-1]
        yield [Span(f"{guide}{'└─ ' if last else '├─ '}", "dim"), *node.title]
        inner = guide + ("   " if last else "│  ")
        for line in node.body:
            yield [Span(f"{inner}   ", "dim"), *line]
        yield from _branches(node.children, inner)


def _text(text: str, style: str) -> list[Line]:
    return [[Span(part, style)] for part in text.translate(_VISIBLE).splitlines()] or [[Span("", style)]]


def _cut(text: str) -> str:
    if len(text) <= LONGEST_VALUE:
        return text
    return f"{text[:LONGEST_VALUE]}… [{len(text):,} characters]"


def _repr(value: object) -> str:
    return as_text(value) if isinstance(value, dict | list | str | int | float | bool | None) else repr(value)

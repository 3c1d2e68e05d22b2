"""A run as text to read: the agent's events as a trace, then the ledger of its attempts."""

from typing import TextIO

from agency.agent import ExecutionContext, display_trace
from agency.agent.events import Event
from agency.enums import EventKind
from agency.models import Event as EventRow
from agency.models import Execution


def execution_trace(execution: Execution, file: TextIO | None = None) -> str:
    """The whole story of `execution`; also written to `file`, in colour where that is a terminal."""
    rows = execution.events.filter(kind=EventKind.CONTENT).order_by("seq")
    context = ExecutionContext(execution_id=str(execution.id), events=[_event(row) for row in rows])
    text = display_trace(context, file=file)
    ledger = _ledger(execution)
    if file is not None and ledger:
        file.write(f"\n{ledger}\n")
    return f"{text.rstrip()}\n\n{ledger}\n" if ledger else text


def _event(row: EventRow) -> Event:
    return Event.model_validate(
        {
            "id": str(row.event_id),
            "execution_id": str(row.execution_id),
            "timestamp": row.timestamp,
            "author": row.author,
            "content": row.content,
            "step": row.step,
            "usage": row.usage,
            "error": row.error,
            "call": row.call,
        }
    )


def _ledger(execution: Execution) -> str:
    lines = [
        f"attempt {row.n}: {row.verdict}{_said(row.feedback or row.summary)}"
        for row in execution.iterations.order_by("n")
    ]
    ended = execution.failure_summary or ""
    code = f" ({execution.failure_code})" if execution.failure_code else ""
    return "\n".join([*lines, f"{execution.status}{code}{_said(ended)}"])


def _said(text: str) -> str:
    return f" – {text.strip()}" if text.strip() else ""

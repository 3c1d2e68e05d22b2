"""A run as text to read: the agent's events as a trace, then the ledger of its attempts or iterations."""

import io
from typing import TextIO

from agency.agent import ExecutionContext, display_trace
from agency.agent.history import USER
from agency.enums import EventKind
from agency.execution import registry
from agency.execution.event_rows import core_events
from agency.models import Execution


def execution_trace(execution: Execution, file: TextIO | None = None) -> str:
    """The whole story of `execution`; also written to `file`, in colour where that is a terminal."""
    rows = execution.events.filter(kind=EventKind.CONTENT).order_by("seq")
    events = core_events(rows)
    context = ExecutionContext(
        execution_id=str(execution.id),
        events=events,
        current_step=max((event.step + 1 for event in events if event.author != USER), default=0),
        final_result=execution.output,
    )
    text = display_trace(context, file=file or io.StringIO(), max_steps=_step_limit(execution))
    ledger = "\n".join([*_bodies(execution), _ledger(execution)])
    if file is not None:
        file.write(f"\n{ledger}\n")
    return f"{text.rstrip()}\n\n{ledger}\n"


def _step_limit(execution: Execution) -> int | None:
    """The agent's limit as it was ordered, or as its class has it now; unknown if the class is gone."""
    ordered = execution.config.get("agent") or {}
    cls = registry.agent_classes().get(ordered.get("agent_key", ""))
    return (ordered.get("limits") or {}).get("max_steps") or (cls.MAX_STEPS if cls else None)


def _bodies(execution: Execution) -> list[str]:
    """What was too large for the record and is whole beside it."""
    kept = execution.blobs.order_by("id").values_list("sha256", "size")
    return [f"kept whole: {sha256} ({size:,} bytes)" for sha256, size in kept]


def _ledger(execution: Execution) -> str:
    rows = execution.iterations.order_by("n")
    if execution.mission_id is None:
        lines = [f"attempt {row.n}: {row.verdict}{_said(row.feedback or row.summary)}" for row in rows]
    else:
        lines = [
            f"iteration {row.n}: {row.verdict}{_said(row.summary)}"
            + (f"\n    next: {row.feedback.strip()}" if row.feedback else "")
            for row in rows
        ]
    code = f" ({execution.failure_code})" if execution.failure_code else ""
    return "\n".join([*lines, f"{execution.status}{code}{_said(execution.failure_summary or '')}"])


def _said(text: str) -> str:
    return " – " + text.strip().replace("\n", "\n    ") if text.strip() else ""

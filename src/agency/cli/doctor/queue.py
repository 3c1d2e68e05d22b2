"""The queue: how long due work waits, which providers are shut, and what no worker can run."""

from collections.abc import Iterator

from agency.cli.doctor.finding import Finding, fine, wrong

LONG_WAIT = 60.0
SHOWN = 3


def examine() -> Iterator[Finding]:
    """Findings about the executions that wait. Presupposes a migrated database."""
    from django.db import Error

    try:
        yield _lag()
        yield from _held()
    except Error:
        yield fine("Queue", "no tables yet")


def _lag() -> Finding:
    from agency.runtime.queue_state import queue_state, shut_gates

    state = queue_state()
    said = f"{state.due} due, the oldest for {state.lag:.0f} s; {state.claimed} running, {state.later} later"
    if gates := shut_gates():
        said += "; asked no more for now: " + ", ".join(
            f"{gate.provider} ({gate.seconds:.0f} s)" for gate in gates
        )
    if state.lag > LONG_WAIT and not gates:
        return wrong("Queue", said, "Start workers (`agency up`, or a Celery worker), or add to them.")
    return fine("Queue", said)


def _held() -> Iterator[Finding]:
    """Executions whose definition is not deployed."""
    from agency.execution.claims import database
    from agency.models import Execution

    rows = Execution.objects.using(database()).filter(finished_at=None, metadata__has_key="held")
    for row in rows.order_by("created_at")[:SHOWN]:
        held = row.metadata["held"]
        yield wrong(
            "Held",
            f"execution {row.pk} since {held['since'][:16]}: {held['reason']}",
            "Deploy a release that knows it, or cancel the execution.",
        )
    if (more := rows.count() - SHOWN) > 0:
        yield wrong("Held", f"{more} more", "See `agency list`.")

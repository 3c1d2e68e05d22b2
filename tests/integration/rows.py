"""Rows in known states, for tests of what reads them."""

from typing import Any

from django.db.models.functions import Now

from agency.models import ConfiguredAgent, Execution, Thread


def execution_row(agent: ConfiguredAgent, **columns: Any) -> Execution:
    """An execution of `agent`: pending and due unless `columns` say otherwise."""
    thread = Thread.objects.create(owner=agent.owner, agent=agent)
    values: dict[str, Any] = {"execution_key": "count-words", "status": "pending"}
    if columns.get("status", "pending") == "pending":
        values["next_run_at"] = Now()
    elif columns["status"] in {"finished", "failed", "cancelled"}:
        values |= {"started_at": Now(), "finished_at": Now()}
    if columns.get("status") == "failed":
        values["failure_code"] = "unknown"
    if columns.get("status") == "cancelled":
        values["cancel_requested_at"] = Now()
    row = Execution.objects.create(owner=agent.owner, agent=agent, thread=thread, **(values | columns))
    return Execution.objects.select_related("agent").get(pk=row.pk)

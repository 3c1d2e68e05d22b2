"""Rows in known states, for tests of what reads them."""

from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from agency.agent import ToolCall
from agency.agent.result import Asked
from agency.enums import EventKind
from agency.execution import store
from agency.human import requests
from agency.human.asking import Ask, about_calls
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


def waiting_row(agent: ConfiguredAgent, ask: Ask | None = None, **columns: Any) -> Execution:
    """An execution of `agent` that waits for a person's answer to `ask`."""
    row = execution_row(agent, status="interrupted", **columns)
    requests.open_request(row.pk, row.iteration + 1, ask or an_ask(), 3600.0)
    return row


def say(execution: Execution, kind: EventKind, **data: Any) -> None:
    """Write a lifecycle event, as whoever moves an execution does."""
    with transaction.atomic():
        row = Execution.objects.select_for_update().get(pk=execution.pk)
        store.lifecycle_event(row, kind, data)


def forget(execution: Execution, *keys: str) -> int:
    """Take entries out of an execution's journal, as if the process had died before; how many there were."""
    events = execution.events.filter(data__key__in=keys)
    seqs = list(events.values_list("seq", flat=True))
    execution.thread.messages.filter(event_seq__in=seqs).delete()
    steps = execution.steps.filter(key__in=keys)
    found = {*events.values_list("data__key", flat=True), *steps.values_list("key", flat=True)}
    events.delete()
    steps.delete()
    return len(found)


def an_ask(*tools: str) -> Ask:
    """What a run asks that wants to call each of `tools` with an amount of 5."""
    schema = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
    calls = [
        ToolCall(tool_call_id=f"c{n}", name=name, arguments={"amount": 5})
        for n, name in enumerate(tools or ("pay",))
    ]
    return about_calls([Asked(call, schema) for call in calls], "Clerk")

"""The demo's last part: a mission files two papers, followed live. What it asks is agreed to, and said so."""

import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from agency.cli import report
from agency.cli.output import short
from agency.enums import EventKind, HumanDecision, HumanRequestKind, LoopStatus

if TYPE_CHECKING:
    from agency.cli.client import Client

APP = "missions.filing"
AGENT_KEY = "filing-clerk"
PAPERS = ("meeting-note", "invoice-garden")
ROUNDS = 6
SECONDS = 1_200
"""How long the mission may take, so that the demo ends by itself; a quiet machine needs about two minutes."""
LOOK_EVERY = 1.0
_SHOWN = 160


def run(client: "Client", out: Console) -> dict[str, Any]:
    """Lay the papers on the tray, dispatch the mission, follow it to its end; its part of the report."""
    samples = {sample.name: sample for sample in import_module("records.samples").samples()}
    tray = import_module(f"{APP}.tray")
    for paper in PAPERS:
        tray.put(paper, samples[paper].text)
    order = import_module(f"{APP}.missions").ORDER
    agent = client.agent_of(AGENT_KEY)
    mission = client.mission(agent, {**order, "max_iterations": ROUNDS, "limits": {"seconds": SECONDS}})
    followed = Followed(client, out, client.dispatch(mission)["id"])
    out.print(
        Text.assemble(("\nA mission: ", "bold"), f"{order['prompt']} On it: {', '.join(PAPERS)}. ")
        .append("Each round is judged by a supervisor; a completion counts only if a check bears it out.")
        .append(f" Execution {short(followed.id)}.\n")
    )
    try:
        ended = followed.to_its_end()
    except KeyboardInterrupt:
        client.cancel(followed.id)
        raise
    documents = [_document(paper, tray.record_of(paper), samples[paper].expected) for paper in PAPERS]
    return report.mission(ended, documents, followed.confirmed)


def _document(paper: str, record: dict[str, Any] | None, expected: dict[str, Any]) -> dict[str, Any]:
    """A paper of the tray, what was filed of it, and whether that is right."""
    filed = record and {"kind": record["kind"], "name": record["name"]}
    compare = import_module("records.compare")
    wrong = set(compare.differences(filed, expected)) & {"kind", "name"}
    return {"document": paper, "filed": filed, "right": not wrong}


@dataclass
class Followed:
    """The mission's execution as it is told: each event once, and what a person would do at once."""

    client: "Client"
    out: Console
    id: str
    seen: int = 0
    confirmed: int = 0
    answered: set[str] = field(default_factory=set[str])
    pause: Callable[[float], object] = time.sleep

    def to_its_end(self) -> dict[str, Any]:
        """The ended execution. Agrees to calls, ends waits; gives up where only a person knows the answer."""
        with self.out.status("The mission begins") as spinner:
            while True:
                row = self.client.execution(self.id)
                if row["event_seq"] > self.seen:
                    self._read_on(row["max_iterations"])
                if row["finished_at"] is not None:
                    return row
                spinner.update(f"loop {row['current_iteration'] or 1}/{row['max_iterations']}")
                if row["request"] is not None:
                    self._answer(row["request"])
                elif row["loop_status"] == LoopStatus.WAITING:
                    self._say("yellow", f"nobody waits in a demo: {row['wait']['what_for']} is cut short")
                    self.client.resume(self.id)
                self.pause(LOOK_EVERY)

    def _answer(self, request: dict[str, Any]) -> None:
        if request["id"] in self.answered:
            return
        self.answered.add(request["id"])
        if request["kind"] != HumanRequestKind.CONFIRM_TOOL:
            self._say("yellow", f"asks a person: {request['message']} Nobody is here to answer: cancelled")
            self.client.cancel(self.id)
            return
        self._say("yellow", f"waits for a person: {request['message']}")
        self.client.answer(request, HumanDecision.APPROVE)
        self.confirmed += len(request["items"])
        self._say("yellow", "approved by the demo, in place of a person (yours wait in `agency inbox`)")

    def _read_on(self, rounds: int) -> None:
        page = self.client.events(self.id, self.seen)
        self.seen = page["after"]
        for event in page["items"]:
            if event["kind"] == EventKind.ITERATION_STARTED:
                self.out.print(Text(f"Loop {event['iteration']}/{rounds}", "bold"))
            elif event["kind"] == EventKind.ITERATION_COMPLETED:
                self._decided(event["data"])
            elif event["error"] is not None:
                self._say("red", event["error"]["message"])
            elif "beside" not in (event["call"] or {}):  # the supervisor's words are told as its decision
                for item in event["content"]:
                    self._content(item)

    def _decided(self, data: dict[str, Any]) -> None:
        style = "green" if data["verdict"] == "complete" else "cyan"
        self._say(style, f"decision: {data['verdict']}. {data['reason'] or data['summary']}")
        if data["next_input"]:
            self._say("cyan", f"next: {data['next_input']}")

    def _content(self, item: dict[str, Any]) -> None:
        if item["type"] == "tool_call":
            given = ", ".join(f"{name}={value}" for name, value in item["arguments"].items())
            self._say("", f"calls {item['name']}({given})")
        elif item["type"] == "tool_result":
            self._say("dim" if item["status"] == "success" else "red", f"← {item['content']}")
        elif item.get("role") == "assistant":
            self._say("", f"says: {item['content']}")

    def _say(self, style: str, what: str) -> None:
        self.out.print(Text(f"  {textwrap.shorten(what, _SHOWN, placeholder=' …')}", style), soft_wrap=True)

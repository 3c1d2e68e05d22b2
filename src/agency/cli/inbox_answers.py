"""From what somebody types to decisions on calls: flags, or questions on a terminal."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from agency.cli import project
from agency.enums import ALLOWED_DECISIONS, AlwaysFor, HumanDecision, HumanRequestKind
from agency.errors import InvalidInput

if TYPE_CHECKING:
    from agency.human.answers import ItemAnswer
    from agency.models import HumanRequest, HumanRequestItem


@dataclass(frozen=True, slots=True)
class Said:
    """One decision as it was typed; values are JSON, or else text."""

    decision: HumanDecision
    arguments: str | None = None
    answer: str | None = None
    result: str | None = None
    reason: str = ""
    always: bool = False
    always_for: AlwaysFor = AlwaysFor.EXECUTION
    grant: int | None = None

    def about(self, item: "HumanRequestItem") -> "ItemAnswer":
        from agency.human.answers import ItemAnswer

        return ItemAnswer(
            item.call_id,
            item.digest,
            self.decision,
            arguments=_object(self.arguments),
            answer=_answer(self.answer, item.answer_schema),
            result=_value(self.result),
            reason=self.reason,
            always=self.always,
            always_for=self.always_for,
            grant=self.grant,
        )


def find_request(prefix: str) -> "HumanRequest":
    """The one human request whose id begins with `prefix`."""
    from agency.models import HumanRequest

    rows = HumanRequest.objects.select_related("execution__agent")
    return project.by_prefix(rows, prefix, "request", "agency inbox")


def chosen(request: "HumanRequest", call_id: str | None) -> "list[HumanRequestItem]":
    """The call with this id, or all undecided ones; of a closed request all, to be told what they got."""
    items = list(request.items.order_by("position"))
    if call_id is None:
        return [item for item in items if item.decision is None] or items
    found = [item for item in items if item.call_id == call_id]
    if not found:
        known = ", ".join(item.call_id for item in items)
        raise InvalidInput(f"The request has no call {call_id!r}. Its calls: {known}.")
    return found


def ask(item: "HumanRequestItem", describe: "Callable[[HumanRequestItem], None]") -> "ItemAnswer":
    """Ask the person at the terminal about one call."""
    if not sys.stdin.isatty():
        raise InvalidInput(
            "Say what to decide: `agency inbox answer ID DECISION`, such as approve or reject."
        )
    describe(item)
    allowed = ALLOWED_DECISIONS[HumanRequestKind(item.kind)]
    word = typer.prompt("Decision", value_proc=_one_of([str(one) for one in allowed]))
    decision = HumanDecision(word)
    said: dict[str, Any] = {}
    if decision is HumanDecision.ANSWER:
        said["answer"] = typer.prompt("Answer")
        if item.proposed.get("needs_grant"):
            said["grant"] = typer.prompt("How many more iterations may there be", type=int)
    elif decision is HumanDecision.REJECT:
        said["reason"] = typer.prompt("Reason, for the model", default="", show_default=False)
    elif decision is HumanDecision.HAPPENED:
        said["result"] = typer.prompt("What it gave back", default="", show_default=False) or None
    elif decision is HumanDecision.APPROVE:
        said["arguments"] = typer.prompt("Arguments", default=json.dumps(item.proposed, ensure_ascii=False))
    return Said(decision, **said).about(item)


def _one_of(words: list[str]) -> Callable[[str], str]:
    def check(text: str) -> str:
        if text not in words:
            raise typer.BadParameter(f"one of {', '.join(words)}")
        return text

    return check


def _object(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError as exc:
        raise InvalidInput(f"--arguments is no JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise InvalidInput("--arguments must be a JSON object, such as '{\"amount\": 5}'.")
    return value


def _answer(text: str | None, schema: dict[str, Any]) -> Any:
    """What was typed as the value that is wanted: a text stays one, whatever it looks like."""
    if text is None or schema.get("type") == "string" or text in schema.get("enum", ()):
        return text
    if schema.get("type") == "boolean" and text.lower() in {"yes", "no"}:
        return text.lower() == "yes"
    return _value(text)


def _value(text: str | None) -> Any:
    """A JSON value if it is one, else the text."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text

"""What a parked run asks a person, in one sentence and one item for each call. Pure: no rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agency.agent.events import ToolCall
from agency.agent.result import Asked
from agency.agent.text import as_text, canonical, clean_json, cut
from agency.enums import HumanRequestKind
from agency.errors import RunParked
from agency.redaction import redact

LONGEST_MESSAGE = 500
LONGEST_VALUE = 80
RESULT_SCHEMA: dict[str, Any] = {"description": "What the call gave back, as the model should see it."}


@dataclass(frozen=True, slots=True)
class Item:
    """One call that a person decides on. `schema` is that of edited arguments, an answer or a result."""

    kind: HumanRequestKind
    call: ToolCall
    schema: dict[str, Any]
    step_key: str = ""


@dataclass(frozen=True, slots=True)
class Ask:
    """What an execution wants of a person."""

    kind: HumanRequestKind
    message: str
    items: Sequence[Item]


def about_calls(asked: Sequence[Asked], agent_name: str) -> Ask:
    """Ask for calls that need a person before they are made; a single question speaks for itself."""
    items = [_item(one) for one in asked]
    kinds = {item.kind for item in items}
    kind = kinds.pop() if len(kinds) == 1 else HumanRequestKind.CONFIRM_TOOL
    if len(items) == 1 and kind is HumanRequestKind.QUESTION:
        message = as_text(items[0].call.arguments.get("question") or f"{agent_name} has a question.")
    else:
        verb = "asks" if kind is HumanRequestKind.QUESTION else "wants to call"
        message = f"{agent_name} {verb} {_listed(item.call for item in items)}."
    return Ask(kind, _sentence(message), items)


def about_cut_calls(cut_calls: Sequence[tuple[str, ToolCall]]) -> Ask:
    """Ask whether calls that a crash cut took effect; each comes with its key in the journal."""
    kind = HumanRequestKind.UNCERTAIN_EFFECT
    items = [Item(kind, call, RESULT_SCHEMA, key) for key, call in cut_calls]
    was = "was" if len(items) == 1 else "were"
    message = f"{_listed(call for _, call in cut_calls)} {was} cut by a crash and may have taken effect."
    return Ask(kind, _sentence(message), items)


class PersonWanted(RunParked):
    """The run cannot go on before a person has answered `ask`, which is about no call."""

    def __init__(self, ask: Ask) -> None:
        super().__init__(ask.message)
        self.ask = ask


INPUT_CALL = "input"
"""The id of the one item of a question that a mission asks."""
NEEDS_GRANT = "needs_grant"
"""In what a blocked mission proposes: its iterations are used up, so the answer must grant more."""
BECAUSE = "because"
"""In what a blocked mission proposes: the failure code of one that is given up, where it is no usual one."""


def about_input(
    question: str,
    kind: str,
    choices: Sequence[str],
    *,
    needs_grant: bool = False,
    because: str | None = None,
) -> Ask:
    """Ask what a blocked mission needs: a text, one of `choices`, or a yes or no (`kind`)."""
    schema: dict[str, Any] = {"type": "string", "minLength": 1, "pattern": r"\S"}
    if kind == "choice":
        schema = {"enum": list(choices)}
    elif kind == "confirmation":
        schema = {"type": "boolean"}
    given = {"choices": list(choices), NEEDS_GRANT: needs_grant, BECAUSE: because}
    asked = {"question": question, **{name: value for name, value in given.items() if value}}
    call = ToolCall(tool_call_id=INPUT_CALL, name="", arguments=asked)
    return Ask(HumanRequestKind.INPUT, _sentence(question), [Item(HumanRequestKind.INPUT, call, schema)])


def described(call: ToolCall) -> str:
    """A call as one reads it in a sentence, without secrets: `pay(amount=5, to=Ada)`."""
    values = (f"{name}={cut_value(value)}" for name, value in storable(call.arguments).items())
    return f"{call.name}({', '.join(values)})"


def cut_value(value: Any) -> str:
    text = " ".join((value if isinstance(value, str) else canonical(value)).split())
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def storable(value: Any) -> Any:
    """A JSON value without secrets and without what a database refuses."""
    return clean_json(redact(value))


def _sentence(text: str) -> str:
    """Masked before it is cut, since half a secret looks like none; and nothing that steers a terminal."""
    shown = "".join(one if one.isprintable() or one == "\n" else "\ufffd" for one in storable(text))
    return cut(shown, LONGEST_MESSAGE)


def _item(asked: Asked) -> Item:
    kind = HumanRequestKind.QUESTION if asked.is_question else HumanRequestKind.CONFIRM_TOOL
    return Item(kind, asked.call, asked.schema)


def _listed(calls: Iterable[ToolCall]) -> str:
    texts = [described(call) for call in calls]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"

"""What people may answer, checked against what was asked. Reads items and writes nothing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agency.agent.text import canonical, cut
from agency.enums import ALLOWED_DECISIONS, AlwaysFor, HumanDecision, HumanRequestKind
from agency.errors import InvalidInput
from agency.human.asking import NEEDS_GRANT, storable
from agency.human.schemas import faults
from agency.models import HumanRequestItem
from agency.redaction import MASK

LONGEST_REASON = 2_000
MOST_GRANTED = 100
"""Iterations that one answer may add."""
HAPPENED = "It took effect; a person confirmed that after a crash."

Fault = dict[str, str]


@dataclass(frozen=True, slots=True)
class ItemAnswer:
    """A person's decision on one call, bound to what was shown by the item's `digest`.

    `arguments`: with `approve`, in place of those that the model proposed. `answer`: with `answer`, any JSON
    value of the item's schema. `result`: with `happened`, what the call gave back. `reason`: with `reject`,
    for the model. `always`: with `approve`, later calls of this tool ask nobody, in this execution or
    (`always_for`) in all of its mission.
    `grant`: with an answer to a mission that has used up its iterations, how many more it gets.
    """

    call_id: str
    digest: str
    decision: HumanDecision
    arguments: dict[str, Any] | None = None
    answer: Any = None
    result: Any = None
    reason: str = ""
    always: bool = False
    always_for: AlwaysFor = AlwaysFor.EXECUTION
    grant: int | None = None

    @property
    def value(self) -> Any:
        """The answer to a question, or the result of a call that did happen."""
        if self.decision is HumanDecision.ANSWER:
            return storable(self.answer)
        if self.decision is HumanDecision.HAPPENED:
            return storable(HAPPENED if self.result is None else self.result)
        return None

    def effective(self, item: HumanRequestItem) -> dict[str, Any] | None:
        """The arguments that the call is made with, or what an answer grants; `None` if nothing follows."""
        if self.grant is not None:
            return {"grant": self.grant}
        if self.decision is HumanDecision.RUN_AGAIN:
            return item.proposed
        if self.decision is not HumanDecision.APPROVE:
            return None
        return item.proposed if self.arguments is None else storable(self.arguments)


def check(
    items: Mapping[str, HumanRequestItem], given: Sequence[ItemAnswer], *, of_mission: bool = False
) -> None:
    """`InvalidInput` with the path of every field that does not fit its item.

    `of_mission`: the execution is a mission's.
    """
    found: list[Fault] = [] if given else [_fault("items", "must hold a decision on at least one call")]
    seen: set[str] = set()
    for n, one in enumerate(given):
        item = items.get(one.call_id)
        if item is None:
            found.append(_fault(f"items[{n}].call_id", "is no call of this request"))
        elif one.call_id in seen:
            found.append(_fault(f"items[{n}].call_id", "is decided twice"))
        else:
            found += (
                _fault(f"items[{n}].{path}", problem) for path, problem in _problems(item, one, of_mission)
            )
        seen.add(one.call_id)
    if found:
        raise InvalidInput(f"{found[0]['path']}: {found[0]['message']}", found)


def _problems(item: HumanRequestItem, one: ItemAnswer, of_mission: bool) -> Iterable[tuple[str, str]]:
    allowed = ALLOWED_DECISIONS[HumanRequestKind(item.kind)]
    if one.decision not in allowed:
        yield "decision", f"must be one of {', '.join(allowed)}"
        return
    yield from _misplaced(one)
    if one.always_for is AlwaysFor.MISSION and not (one.always and of_mission):
        yield "always_for", "goes with `always`" if of_mission else "is for executions of a mission only"
    if len(one.reason) > LONGEST_REASON:
        yield "reason", f"is longer than {LONGEST_REASON} characters"
    if one.decision is HumanDecision.ANSWER:
        if one.answer is None:
            yield "answer", "is missing"
        else:
            yield from _misfits("answer", item.answer_schema, one.answer)
        yield from _granted(item, one)
    if one.decision is HumanDecision.APPROVE:
        yield from _arguments(item, one)


def _misplaced(one: ItemAnswer) -> Iterable[tuple[str, str]]:
    """Values that the decision does not take: ignoring them would surprise."""
    if one.arguments is not None and one.decision is not HumanDecision.APPROVE:
        yield "arguments", "go with `approve` only"
    if one.answer is not None and one.decision is not HumanDecision.ANSWER:
        yield "answer", "goes with `answer` only"
    if one.result is not None and one.decision is not HumanDecision.HAPPENED:
        yield "result", "goes with `happened` only"
    if one.always and one.decision is not HumanDecision.APPROVE:
        yield "always", "goes with `approve` only"
    if one.grant is not None and one.decision is not HumanDecision.ANSWER:
        yield "grant", "goes with `answer` only"


def _granted(item: HumanRequestItem, one: ItemAnswer) -> Iterable[tuple[str, str]]:
    """Iterations are granted where they are used up, and must be there."""
    if not item.proposed.get(NEEDS_GRANT):
        if one.grant is not None:
            yield "grant", "is not asked for here: iterations are left"
    elif one.grant is None:
        yield "grant", "is missing: all iterations are used, so say how many more there may be"
    elif not 1 <= one.grant <= MOST_GRANTED:
        yield "grant", f"must be from 1 to {MOST_GRANTED}"


def _arguments(item: HumanRequestItem, one: ItemAnswer) -> Iterable[tuple[str, str]]:
    if one.arguments is not None and one.arguments != item.proposed:
        yield from _misfits("arguments", item.answer_schema, one.arguments)
    if MASK in canonical(one.effective(item)):
        yield (
            "arguments",
            "hold a secret, which is not stored, so the call cannot be made after a pause; reject it, and "
            "let the tool read the secret from its settings",
        )


def _misfits(path: str, schema: dict[str, Any], value: Any) -> Iterable[tuple[str, str]]:
    for fault in faults(schema, value):
        yield path + "".join(_step(part) for part in fault.absolute_path), cut(fault.message, 300)


def _step(part: str | int) -> str:
    return f"[{part}]" if isinstance(part, int) else f".{part}"


def _fault(path: str, message: str) -> Fault:
    return {"path": path, "message": message}

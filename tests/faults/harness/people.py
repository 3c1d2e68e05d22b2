"""Holds what a crowd's answers came to against the rows: one winner each, and the one that was heard."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.faults.harness.history import is_claim

ANSWERED = "human_request_answered"

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Crowds:
    """`given` answers in all; `wrong` are the requests whose outcome cannot be right."""

    given: int
    wrong: int


def judged(answers: Iterable[Row], dump: Row, executions: dict[str, Row]) -> Crowds:
    """Each line of `answers` is a request: its execution, how many answered, and what won."""
    heard: dict[str, list[str]] = defaultdict(list)
    for row in dump["message"]:
        heard[row["thread__execution__id"]].append(row["content"])
    asked = list(answers)
    wrong = sum(not _is_right(one, executions[one["execution"]], heard[one["execution"]]) for one in asked)
    return Crowds(sum(one["given"] for one in asked), wrong)


def _is_right(one: Row, row: Row, heard: list[str]) -> bool:
    won = one["won"]
    if row["status"] != "finished":
        # Something else was first. A cancel may also stop what an answer has set going.
        by_cancel = one["race"] == "cancel" and row["status"] == "cancelled" and len(won) <= 1
        by_expiry = one["race"] == "expiry" and row["failure_code"] == "request_expired" and not won
        return by_cancel or by_expiry
    return len(won) == 1 and len(heard) == 1 and heard[0].endswith(won[0])


def waits(events: Iterable[Row]) -> list[float]:
    """Seconds from each answer to the claim that goes on with it."""
    answered: dict[str, float] = {}
    found: list[float] = []
    for event in sorted(events, key=lambda one: (one["execution_id"], one["seq"])):
        if event["kind"] == ANSWERED and not event["data"].get("undecided"):
            answered[event["execution_id"]] = event["timestamp"]
        elif is_claim(event) and event["execution_id"] in answered:
            found.append(event["timestamp"] - answered.pop(event["execution_id"]))
    return found

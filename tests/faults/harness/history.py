"""Holds an execution's ledger against its own log: who committed what, by which claim, and what came last."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

COMPLETED = {"execution_attempt_completed", "mission_iteration_completed"}
_CLAIMS = {"execution_started", "execution_resumed", "mission_iteration_started"}

Row = dict[str, Any]


def is_claim(event: Row) -> bool:
    """Whether it tells of a claim; a loop's first iteration also begins without one of its own."""
    return event["kind"] in _CLAIMS and "fence" in event["data"]


def claims(events: Iterable[Row]) -> dict[tuple[str, int], Row]:
    """The event of each claim, by execution and fence."""
    return {(event["execution_id"], event["data"]["fence"]): event for event in events if is_claim(event)}


def held(strike: Row, executions: dict[str, Row], known: dict[tuple[str, int], Row]) -> list[tuple[str, int]]:
    """Of what the nemesis says that it struck, what the log confirms: neither over then nor taken anew."""
    found: list[tuple[str, int]] = []
    for execution_id, fence in strike.get("held", ()):
        over = executions.get(execution_id, {}).get("finished_at")
        following = known.get((execution_id, fence + 1))
        is_past = following is not None and following["timestamp"] < strike["at"]
        if not is_past and (over is None or over >= strike["at"]):
            found.append((execution_id, fence))
    return found


def committed_twice(ledger: Iterable[Row], events: Iterable[Row], wanted: int) -> int:
    """Attempts that stand twice in ledger or log, and those beyond what was ordered."""
    rows = Counter(row["n"] for row in ledger)
    completed = Counter(event["iteration"] for event in events if event["kind"] in COMPLETED)
    return sum(max(rows[n], completed[n]) > 1 or n > wanted for n in {*rows, *completed})


def late_commits(ledger: Iterable[Row], events: list[Row]) -> int:
    """Attempts that another claim committed than the one that held the row: the last before it in the log."""
    by, holder = {}, None
    for event in sorted(events, key=lambda one: one["seq"]):
        if is_claim(event):
            holder = event["data"]["fence"]
        elif event["kind"] in COMPLETED:
            by[event["iteration"]] = holder
    return sum(by.get(row["n"]) != row["fence"] for row in ledger)


def last_kind(events: list[Row]) -> str | None:
    """What the log ends with."""
    return max(events, key=lambda one: one["seq"])["kind"] if events else None

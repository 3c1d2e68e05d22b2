"""Judges a run from its database dump, the provider's log, the effect list and the nemesis's log alone.

Counts what must be zero, and beside it what proves that the faults have struck.
"""

import bisect
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.faults.harness import bill, history, people

TERMINAL = {"finished", "failed", "cancelled"}
ENDINGS = {f"execution_{status}" for status in TERMINAL}
LONGEST_END = 15.0
EDGE = 0.3
"""Seconds at the edges of a sleep in which others may still have written, or have again."""
TAKEN_WITHIN = 5.0
"""Seconds in which a struck claim is to be taken: nobody may sleep with SQLite's write lock in them."""
MUST_BE_ZERO = (
    *("lost", "twice", "stuck", "duplicate_terminal", "wrong_end", "event_gaps", "ledger_gaps"),
    *("late_commits", "unrecorded", "lost_effects", "untaken"),
    *("unexplained_calls", "repeated_recorded", "changed_requests", "unexplained_effects", "extra_effects"),
    *("wrong_winners", "left_claims"),
    "broken_invariants",
    "deserted",
    "unclean_ends",
)


@dataclass(slots=True)
class Figures:
    """What a run gave. Seconds and counts; `exercised` counts what struck.

    `recovery` is from a strike to the next claim; `alone` is the part of it that had lost a worker in the
    same attempt before, and is therefore run in a process of its own. `standstills` are sleeps with SQLite's
    write lock held: nobody can recover anything before the sleeper wakes, so they are counted and not timed.
    `untaken` are struck claims that no other followed. `unrecorded` are answers that the orders need and that
    are not on record, or on record and on no bill. `provider_needed` follows from the orders alone.
    `wrong_winners` are requests that more than one answer has won, or none though nothing else has, or whose
    loop heard another answer. `answered` is from an answer to the next claim.
    """

    missions: int = 0
    iterations: int = 0
    lost: int = 0
    twice: int = 0
    stuck: int = 0
    duplicate_terminal: int = 0
    wrong_end: int = 0
    event_gaps: int = 0
    ledger_gaps: int = 0
    late_commits: int = 0
    provider_calls: int = 0
    provider_needed: int = 0
    unrecorded: int = 0
    unexplained_calls: int = 0
    repeated_recorded: int = 0
    changed_requests: int = 0
    effect_calls: int = 0
    effects: int = 0
    unexplained_effects: int = 0
    extra_effects: int = 0
    lost_effects: int = 0
    untaken: int = 0
    answers_given: int = 0
    wrong_winners: int = 0
    answered_p95_s: float | None = None
    left_claims: int = 0
    broken_invariants: int = 0
    deserted: int = 0
    unclean_ends: int = 0
    refused_share: float = 0.0
    rejected_writes: int = 0
    recovery_p50_s: float | None = None
    recovery_p95_s: float | None = None
    recovery_max_s: float | None = None
    standstills: int = 0
    alone_p95_s: float | None = None
    start_p95_s: float | None = None
    cancel_p95_s: float | None = None
    seconds: float = 0.0
    exercised: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(slots=True)
class Evidence:
    """All that the checker looks at. `logs` are the lines that workers and dispatchers wrote."""

    dump: dict[str, Any]
    provider: list[dict[str, Any]]
    effects: list[tuple[str, float, int]]
    strikes: list[dict[str, Any]]
    logs: list[str] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)


def check(evidence: Evidence, orders: int) -> Figures:
    """The figures of a run of which `orders` were given."""
    dump = evidence.dump
    executions = {row["id"]: row for row in dump["execution"]}
    figures = Figures(missions=len(executions), iterations=len(dump["iteration"]), seconds=dump["seconds"])
    _mark_standstills(evidence)
    claims = history.claims(dump["event"])
    for strike in evidence.strikes:
        strike["held"] = history.held(strike, executions, claims)
    figures.standstills = sum(bool(strike.get("standstill")) for strike in evidence.strikes)
    _rows(figures, executions, dump, orders)
    _outside(figures, executions, evidence)
    _times(figures, executions, evidence, claims)
    crowds = people.judged(evidence.answers, dump, executions)
    figures.answers_given, figures.wrong_winners = crowds.given, crowds.wrong
    figures.answered_p95_s = percentile(sorted(people.waits(dump["event"])), 95)
    figures.rejected_writes = sum(": stopped: " in line for line in evidence.logs)
    refused = sum(line["status"] == 429 for line in evidence.provider)
    figures.refused_share = round(refused / max(1, len(evidence.provider)), 4)
    figures.broken_invariants = len(dump["broken"])
    figures.deserted = sum(strike["fault"] == "deserted" for strike in evidence.strikes)
    figures.unclean_ends = sum(_unclean(strike) for strike in evidence.strikes)
    figures.exercised = dict(
        Counter(strike["fault"] for strike in evidence.strikes if _struck(strike, executions))
        + Counter(f"provider_{line['status']}" for line in evidence.provider if line["status"] != 200)
    )
    return figures


def _mark_standstills(evidence: Evidence) -> None:
    """Mark the sleeps in which nobody could write: the sleeper held the one write lock of SQLite."""
    moments = sorted(row["timestamp"] for row in evidence.dump["event"])
    for woken in evidence.strikes:
        if woken["fault"] == "woken" and woken["one_writer"]:
            since, until = woken["since"] + EDGE, woken["at"] - EDGE
            woken["standstill"] = bisect.bisect(moments, since) == bisect.bisect(moments, until)
    still = [(one["since"], one["at"]) for one in evidence.strikes if one.get("standstill")]
    for strike in evidence.strikes:
        # Another sleeper's lock keeps what this one held from being taken just as well.
        until = strike["at"] + TAKEN_WITHIN
        if strike["fault"] in bill.CUTS and any(since < until and strike["at"] < at for since, at in still):
            strike["standstill_follows"] = True


def _unclean(strike: dict[str, Any]) -> bool:
    """A worker that was asked to end must give everything back, be quick and say that all is well."""
    return strike["fault"] == "ended" and not (
        strike["code"] == 0 and strike["left"] == 0 and strike["seconds"] < LONGEST_END
    )


def _struck(strike: dict[str, Any], executions: dict[str, Any]) -> bool:
    """A strike counts only while work is open, and one on a worker only if that held something.

    What came of strikes is none.
    """
    if strike["fault"] in {"deserted", "ended", "woken"}:
        return False
    if strike["fault"].endswith("_worker"):
        return bool(strike["held"])
    return any(
        row["created_at"] <= strike["at"] and not _over_at(row, strike["at"]) for row in executions.values()
    )


def _over_at(row: dict[str, Any], at: float) -> bool:
    return row["finished_at"] is not None and row["finished_at"] <= at


def _rows(figures: Figures, executions: dict[str, Any], dump: dict[str, Any], orders: int) -> None:
    ledger: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in dump["iteration"]:
        ledger[row["execution_id"]].append(row)
    events: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in dump["event"]:
        events[row["execution_id"]].append(row)
    # By the orders' own numbers: one that was taken twice must not hide one that was lost.
    numbers = {row["input"]["number"] for row in executions.values()}
    figures.lost = max(0, orders - len(numbers))
    figures.twice = len(executions) - len(numbers)
    for execution_id, row in executions.items():
        _execution(figures, row, ledger[execution_id], events[execution_id])


def _execution(
    figures: Figures, row: dict[str, Any], ledger: list[dict[str, Any]], events: list[dict[str, Any]]
) -> None:
    hangs, over = row["input"]["mood"] == "hang", row["status"] in TERMINAL
    wanted = 1 if hangs else row["input"]["attempts"]
    ns = {one["n"] for one in ledger}
    ending = row["input"].get("ending") or ("cancelled" if hangs else "finished")
    figures.stuck += not over
    figures.wrong_end += over and (row["status"], history.last_kind(events)) != (
        ending,
        f"execution_{ending}",
    )
    figures.lost += 0 if hangs else max(0, wanted - len(ns))
    figures.ledger_gaps += sorted(ns) != list(range(1, row["iteration"] + 1))
    figures.event_gaps += sorted(one["seq"] for one in events) != list(range(1, len(events) + 1))
    figures.event_gaps += len(events) < row["iteration"]
    figures.left_claims += over and row["claim_id"] is not None
    figures.twice += history.committed_twice(ledger, events, wanted)
    figures.late_commits += history.late_commits(ledger, events)
    endings = Counter(one["generation"] for one in events if one["kind"] in ENDINGS)
    figures.duplicate_terminal += sum(times > 1 for times in endings.values())


def _outside(figures: Figures, executions: dict[str, Any], evidence: Evidence) -> None:
    recorded = bill.recorded_answers(evidence.dump, lambda one: executions[one]["input"]["number"])
    excuses = bill.Excuses(evidence.strikes)
    paid = bill.repeats(bill.answers(evidence.provider), excuses)
    needed = bill.needed(row["input"] for row in executions.values())
    figures.provider_calls, figures.provider_needed = paid.calls, len(needed)
    billed = {key for key, _ in bill.answers(evidence.provider)}
    # What ended early may have been asked for more than its rounds.
    early = {row["input"]["number"] for row in executions.values() if "ending" in row["input"]}
    counted = {key for key in recorded if key[0] not in early or key in needed}
    figures.unrecorded = len(needed ^ counted) + len(recorded.keys() - billed)
    figures.unexplained_calls = paid.unexplained
    figures.repeated_recorded = bill.repeats_of_recorded(evidence.provider, recorded, excuses)
    figures.changed_requests = bill.changed_requests(evidence.provider)
    made = bill.repeats(((key, bill.Call(at, caller, at)) for key, at, caller in evidence.effects), excuses)
    figures.effect_calls, figures.effects = made.calls, made.distinct
    figures.unexplained_effects = made.unexplained
    # A key begins with execution and iteration: each of these may be there once.
    places = Counter(tuple(key.split(":")[:2]) for key in {key for key, _, _ in evidence.effects})
    figures.extra_effects = sum(times > 1 for times in places.values())
    committed = {
        (row["execution_id"], str(row["n"]))
        for row in evidence.dump["iteration"]
        if executions[row["execution_id"]]["input"]["mood"] != "hang"
    }
    figures.lost_effects = len(committed - places.keys())


def _times(
    figures: Figures,
    executions: dict[str, Any],
    evidence: Evidence,
    claims: dict[tuple[str, int], dict[str, Any]],
) -> None:
    waits: list[float] = []
    alone: list[float] = []
    endings = {
        one["execution_id"]: one["timestamp"] for one in evidence.dump["event"] if one["kind"] in ENDINGS
    }
    for strike in evidence.strikes:
        measured = strike["fault"] in bill.CUTS and not strike.get("standstill_follows")
        for execution_id, fence in strike["held"] if measured else ():
            following = claims.get((execution_id, fence + 1))
            if following is None:
                over_at = endings.get(execution_id, math.inf)
                figures.untaken += not _excused(strike, over_at, evidence.strikes)
                continue
            waits.append(following["timestamp"] - strike["at"])
            before = claims.get((execution_id, fence - 1))
            if before is not None and before["iteration"] == following["iteration"]:
                alone.append(waits[-1])
    waits.sort()
    figures.recovery_p50_s, figures.recovery_p95_s = percentile(waits, 50), percentile(waits, 95)
    figures.recovery_max_s = percentile(waits, 100)
    figures.alone_p95_s = percentile(sorted(alone), 95)
    figures.start_p95_s = percentile(
        sorted(row["started_at"] - row["created_at"] for row in executions.values() if row["started_at"]), 95
    )
    figures.cancel_p95_s = percentile(
        sorted(
            row["finished_at"] - row["cancel_requested_at"]
            for row in executions.values()
            if row["status"] == "cancelled"
        ),
        95,
    )


def _excused(strike: dict[str, Any], over_at: float, strikes: list[dict[str, Any]]) -> bool:
    """Whether nobody had to take what was struck: its last commit was under way, or nobody could write.

    A sleeper may write the terminal event, hold the row's lock through its sleep and commit after it.
    """
    still = (one for one in strikes if one.get("standstill"))
    if over_at <= strike["at"] + EDGE:
        return True
    return any(one["since"] <= strike["at"] <= one["at"] for one in still)


def percentile(ordered: list[float], share: float) -> float | None:
    """Of sorted values, the one that `share` percent do not exceed; `None` of none."""
    if not ordered:
        return None
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share / 100))], 2)


def faulty(figures: Figures) -> Iterable[str]:
    """What must be zero and is not."""
    return [f"{name} {value}" for name in MUST_BE_ZERO if (value := getattr(figures, name))]

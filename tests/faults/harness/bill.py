"""Holds the provider's bill and the effect server's list against what was recorded and what struck.

A call that was made again needs an excuse. There are three: a strike on its process while it was under way; a
caller that slept through its lease just before, since no check comes after the last check (it may call before
or after whoever took its work); and on SQLite a sleeper that held the one write lock, so that nobody wrote
and all leases ran out.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

Key = tuple[int, int, int]
CUTS = {"kill_worker", "stop_worker"}
LATE = 2.0
"""Seconds in which a process that was woken has noticed that it lost its claims."""

UNREAD = 1.0
"""Seconds that a request may lie unread in a busy server, whose clock says when it came."""

UNWRITTEN = 3.0
"""Seconds that an answer may be on its way to the record on a busy machine."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call from outside's view: when it came, which process made it and when it was answered."""

    began: float
    caller: int
    ended: float


@dataclass(frozen=True, slots=True)
class Repeats:
    """`calls` in all, of `distinct` keys; `unexplained` repeats have no strike to excuse them."""

    calls: int
    distinct: int
    unexplained: int


class Excuses:
    """What the nemesis's log says about the processes that made calls."""

    def __init__(self, strikes: Iterable[dict[str, Any]]) -> None:
        self._cut: dict[int, list[float]] = defaultdict(list)
        self._woken: dict[int, list[float]] = defaultdict(list)
        self._standstills: list[tuple[float, float]] = []
        for strike in strikes:
            if strike["fault"] in CUTS:
                for pid in (strike["pid"], *strike.get("lodgers", ())):
                    self._cut[pid].append(strike["at"])
            elif strike["fault"] == "woken":
                self._woken[strike["pid"]].append(strike["at"])
                if strike.get("standstill"):
                    self._standstills.append((strike["since"], strike["at"]))

    def late(self, call: Call) -> bool:
        """Whether the caller had just been woken and could not know yet."""
        return any(0 <= call.began - at <= LATE for at in self._woken[call.caller])

    def cover(self, call: Call, following: Call) -> bool:
        until = min(call.ended + UNWRITTEN, following.began)
        struck = any(call.began - UNREAD <= at <= until for at in self._cut[call.caller])
        still = any(since <= following.began and call.began <= at for since, at in self._standstills)
        return struck or still or self.late(call) or self.late(following)


def repeats(calls: Iterable[tuple[Any, Call]], excuses: Excuses) -> Repeats:
    """What was called again, and how much of that nothing explains."""
    by_key: dict[Any, list[Call]] = defaultdict(list)
    for key, call in calls:
        by_key[key].append(call)
    unexplained = 0
    for made in by_key.values():
        made.sort(key=lambda call: call.began)
        unexplained += sum(not excuses.cover(*pair) for pair in itertools.pairwise(made))
    return Repeats(sum(map(len, by_key.values())), len(by_key), unexplained)


def needed(orders: Iterable[dict[str, Any]]) -> set[Key]:
    """The answers that the orders cannot do without: in each attempt the tool's call, then the text.

    Of a loop also the decision.
    """
    return {
        (order["number"], attempt, step)
        for order in orders
        if order["mood"] != "hang"
        for attempt in range(1, (1 if "ending" in order else order["attempts"]) + 1)
        for step in ((0, 1, 2) if order.get("loop") else (0, 1))
    }


def answers(provider_log: Iterable[dict[str, Any]]) -> list[tuple[Key, Call]]:
    """The paid calls: those that were answered well."""
    return [(key_of(line), call_of(line)) for line in provider_log if line["status"] == 200]


def key_of(line: dict[str, Any]) -> Key:
    number, attempt, step = line["key"]
    return number, attempt, step


def call_of(line: dict[str, Any]) -> Call:
    return Call(line["began"], line["caller"], line["ended"])


def repeats_of_recorded(
    provider_log: Iterable[dict[str, Any]], recorded: dict[Key, float], excuses: Excuses
) -> int:
    """Requests for an answer that was on record before they began."""
    never = float("inf")
    return sum(
        line["began"] > recorded.get(key_of(line), never) and not excuses.late(call_of(line))
        for line in provider_log
    )


def changed_requests(provider_log: Iterable[dict[str, Any]]) -> int:
    """Steps that were asked with different words when they were asked again."""
    digests: dict[Key, set[str]] = defaultdict(set)
    for line in provider_log:
        digests[key_of(line)].add(line["digest"])
    return sum(len(seen) > 1 for seen in digests.values())


def recorded_answers(dump: dict[str, Any], number_of: Callable[[str], int]) -> dict[Key, float]:
    """When each answer of the model was recorded, by order, attempt and step."""
    moments: dict[Key, float] = {}
    step: dict[tuple[str, int], int] = defaultdict(int)
    for event in sorted(dump["event"], key=lambda row: (row["execution_id"], row["seq"])):
        if not event["data"].get("key", "").endswith(":model"):
            continue
        place = (event["execution_id"], event["iteration"])
        moments[number_of(event["execution_id"]), event["iteration"], step[place]] = event["timestamp"]
        step[place] += 1
    return moments

"""Holds the provider's bill and the effect server's list against what was recorded and what struck.

A call that was made again is excused only by a strike on its process between that call and the next one.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

Key = tuple[int, int, int]
CUTS = {"kill_worker", "stop_worker"}


@dataclass(frozen=True, slots=True)
class Call:
    """One call from outside's view: when it came and which process made it."""

    began: float
    caller: int


@dataclass(frozen=True, slots=True)
class Repeats:
    """`calls` in all, of `distinct` keys; `unexplained` repeats have no strike to excuse them."""

    calls: int
    distinct: int
    unexplained: int


def repeats(calls: Iterable[tuple[Any, Call]], strikes: Iterable[dict[str, Any]]) -> Repeats:
    """What was called again, and how much of that no strike explains."""
    by_key: dict[Any, list[Call]] = defaultdict(list)
    for key, call in calls:
        by_key[key].append(call)
    cuts: dict[int, list[float]] = defaultdict(list)
    for strike in strikes:
        if strike["fault"] in CUTS:
            cuts[strike["pid"]].append(strike["at"])
    unexplained = 0
    for made in by_key.values():
        made.sort(key=lambda call: call.began)
        for call, following in itertools.pairwise(made):
            struck = any(call.began <= at <= following.began for at in cuts[call.caller])
            unexplained += not struck
    return Repeats(sum(map(len, by_key.values())), len(by_key), unexplained)


def answers(provider_log: Iterable[dict[str, Any]]) -> list[tuple[Key, Call]]:
    """The paid calls: those that were answered well."""
    return [
        (key_of(line), Call(line["began"], line["caller"])) for line in provider_log if line["status"] == 200
    ]


def key_of(line: dict[str, Any]) -> Key:
    number, attempt, step = line["key"]
    return number, attempt, step


def repeats_of_recorded(provider_log: Iterable[dict[str, Any]], recorded: dict[Key, float]) -> int:
    """Requests for an answer that was on record before they began."""
    never = float("inf")
    return sum(line["began"] > recorded.get(key_of(line), never) for line in provider_log)


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

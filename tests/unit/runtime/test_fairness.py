"""Whose turn it is, decided without a database."""

from collections import Counter

from agency.runtime.conf import RuntimeSettings
from agency.runtime.fairness import MEMORY, Lane, Limits, Running, Served, Waiting, in_turn

ADA, BOB = Lane("ada", "clerk", "openai"), Lane("bob", "clerk", "openai")
ADAS_OTHER = Lane("ada", "scout", "local")
FREE = RuntimeSettings()


def order(*waiting: Waiting, running: dict[Lane, int] | None = None, **settings: object) -> list[Lane]:
    turn = in_turn(waiting, Running(running or {}), Served(), RuntimeSettings(**settings))
    return [one.lane for one in turn]


def test_who_has_waited_longest_is_first_where_all_else_is_equal() -> None:
    assert order(Waiting(ADA, seconds=1), Waiting(BOB, seconds=2)) == [BOB, ADA]


def test_an_owner_with_less_running_is_first_however_long_the_other_waits() -> None:
    assert order(Waiting(ADA, seconds=9), Waiting(BOB, seconds=1), running={ADA: 3, BOB: 2}) == [BOB, ADA]


def test_what_runs_in_any_lane_of_an_owner_counts_against_all_of_them() -> None:
    assert order(Waiting(ADAS_OTHER, seconds=9), Waiting(BOB, seconds=1), running={ADA: 1}) == [
        BOB,
        ADAS_OTHER,
    ]


def test_of_one_owners_lanes_the_one_with_less_running_is_first() -> None:
    assert order(Waiting(ADA, seconds=9), Waiting(ADAS_OTHER, seconds=1), running={ADA: 1}) == [
        ADAS_OTHER,
        ADA,
    ]


def test_a_single_place_is_shared_in_turns() -> None:
    served, taken = Served(), []
    for _ in range(6):
        waiting = [Waiting(ADA, seconds=1), Waiting(BOB, seconds=2), Waiting(ADAS_OTHER, seconds=3)]
        first = in_turn(waiting, Running({}), served, FREE)[0].lane
        served.note(first)
        taken.append(first)
    assert Counter(lane.owner for lane in taken) == {"ada": 3, "bob": 3}
    assert {lane for lane in taken if lane.owner == "ada"} == {ADA, ADAS_OTHER}


def test_the_memory_of_who_was_served_does_not_grow_for_ever() -> None:
    served = Served()
    for n in range(2 * MEMORY):
        served.note(Lane(n, "clerk", "openai"))
    assert served.last(Lane(0, "clerk", "openai")) == (0, 0)
    assert served.last(Lane(2 * MEMORY - 1, "clerk", "openai")) == (2 * MEMORY, 2 * MEMORY)


def test_a_lane_at_its_limit_or_behind_a_closed_gate_has_no_turn() -> None:
    assert order(Waiting(ADA, 1), Waiting(BOB, 2), running={ADA: 2}, CONCURRENCY_PER_OWNER=2) == [BOB]
    assert order(Waiting(ADA, 1), running={ADA: 2}, CONCURRENCY_PER_AGENT=2) == []
    assert order(Waiting(ADA, 1), running={BOB: 2}, CONCURRENCY_PER_PROVIDER={"openai": 2}) == []
    assert order(Waiting(ADA, 1), Waiting(BOB, 2, is_shut=True)) == [ADA]


def test_an_agents_own_limit_overrules_the_projects() -> None:
    own = Waiting(ADA, seconds=1, agent_limit=5)
    assert order(own, running={ADA: 4}, CONCURRENCY_PER_AGENT=2) == [ADA]
    assert order(own, running={ADA: 5}, CONCURRENCY_PER_AGENT=9) == []


def test_one_number_for_providers_is_a_limit_for_each_of_them() -> None:
    assert Limits.of(Waiting(ADA, 1), RuntimeSettings(CONCURRENCY_PER_PROVIDER=3)).provider == 3
    named = RuntimeSettings(CONCURRENCY_PER_PROVIDER={"local": 1})
    assert Limits.of(Waiting(ADA, 1), named).provider is None
    assert Limits.of(Waiting(ADAS_OTHER, 1), named).provider == 1

"""The checker finds each kind of damage in a record that is otherwise good."""

import copy
from typing import Any

import pytest

from tests.faults.harness import people
from tests.faults.harness.checker import Evidence, check, faulty

KILL = {"at": 10.2, "fault": "kill_worker", "pid": 7, "held": [["a", 1]]}


def event(seq: int, kind: str, iteration: int, at: float, **data: Any) -> dict[str, Any]:
    known = {"execution_id": "a", "generation": 1}
    return {**known, "seq": seq, "kind": kind, "iteration": iteration, "timestamp": at, "data": data}


def asked(attempt: int, step: int, began: float, caller: int, **other: Any) -> dict[str, Any]:
    line = {"key": [0, attempt, step], "began": began, "ended": began + 0.1, "caller": caller, "status": 200}
    return {**line, "digest": f"{attempt}.{step}", **other}


@pytest.fixture
def good() -> Evidence:
    """One order of two attempts, whose worker 7 was killed in its first call; worker 8 went on."""
    row = {
        "id": "a",
        "status": "finished",
        "iteration": 2,
        "fence": 2,
        "claim_id": None,
        "input": {"number": 0, "attempts": 2, "mood": "well"},
        "generation": 1,
        "created_at": 9.0,
        "started_at": 10.0,
        "finished_at": 14.0,
        "cancel_requested_at": None,
    }
    events = [
        event(1, "execution_started", 1, 10.0, fence=1),
        event(2, "execution_resumed", 1, 11.7, fence=2),
        event(3, "content", 1, 12.0, key="1:1:0:model"),
        event(4, "content", 1, 12.5, key="1:1:1:model"),
        event(5, "execution_attempt_completed", 1, 12.6),
        event(6, "content", 2, 13.0, key="2:2:2:model"),
        event(7, "content", 2, 13.5, key="2:2:3:model"),
        event(8, "execution_attempt_completed", 2, 13.9),
        event(9, "execution_finished", 2, 14.0),
    ]
    ledger = [{"execution_id": "a", "n": n, "claim_id": "c", "fence": 2, "verdict": "x"} for n in (1, 2)]
    provider = [
        asked(1, 0, 10.1, 7),
        asked(1, 0, 11.8, 8),
        asked(1, 1, 12.1, 8),
        asked(2, 0, 12.8, 8),
        asked(2, 1, 13.1, 8),
    ]
    return Evidence(
        dump={
            "message": [],
            "execution": [row],
            "event": events,
            "iteration": ledger,
            "step": [],
            "broken": {},
            "seconds": 5.0,
        },
        provider=provider,
        effects=[("a:1:1:0:0:apply:x", 12.1, 8), ("a:2:2:2:0:apply:y", 13.0, 8)],
        strikes=[copy.deepcopy(KILL)],
    )


def test_a_good_record_has_no_faults_and_shows_what_struck(good: Evidence) -> None:
    figures = check(good, orders=1)
    assert faulty(figures) == []
    assert (figures.missions, figures.iterations, figures.exercised) == (1, 2, {"kill_worker": 1})
    assert (figures.provider_calls, figures.provider_needed) == (5, 4)
    assert (figures.recovery_p50_s, figures.recovery_p95_s) == (1.5, 1.5)


def test_a_strike_on_a_worker_that_held_nothing_proves_nothing(good: Evidence) -> None:
    good.strikes.append({"at": 13.0, "fault": "kill_worker", "pid": 9, "held": []})
    assert check(good, orders=1).exercised == {"kill_worker": 1}


def test_what_the_log_does_not_confirm_was_not_struck_and_is_not_timed(good: Evidence) -> None:
    good.strikes += [
        {"at": 12.0, "fault": "kill_worker", "pid": 9, "held": [["a", 1]]},
        {"at": 14.5, "fault": "kill_worker", "pid": 8, "held": [["a", 2]]},
    ]
    figures = check(good, orders=1)
    assert figures.exercised == {"kill_worker": 1}
    assert (figures.recovery_p50_s, figures.recovery_max_s, faulty(figures)) == (1.5, 1.5, [])


def test_a_strike_on_a_server_while_no_work_is_open_proves_nothing(good: Evidence) -> None:
    good.strikes += [{"at": at, "fault": "flush_broker"} for at in (8.9, 12.0, 14.1)]
    assert check(good, orders=1).exercised == {"kill_worker": 1, "flush_broker": 1}


def test_an_order_that_was_taken_twice_does_not_hide_one_that_was_lost(good: Evidence) -> None:
    again = copy.deepcopy(good.dump["execution"][0]) | {"id": "b"}
    good.dump["execution"].append(again)
    assert {"lost 3", "twice 1"} <= set(faulty(check(good, orders=2)))


def test_a_last_commit_that_was_under_way_needs_no_successor(good: Evidence) -> None:
    good.strikes.append({"at": 13.95, "fault": "kill_worker", "pid": 8, "held": [["a", 2]]})
    assert faulty(check(good, orders=1)) == []


def test_without_the_outside_logs_nothing_is_accepted(good: Evidence) -> None:
    good.provider.clear()
    good.effects.clear()
    assert {"unrecorded 4", "lost_effects 2"} <= set(faulty(check(good, orders=1)))


def test_who_was_just_woken_may_come_too_late_once(good: Evidence) -> None:
    good.provider.append(asked(1, 0, 12.6, 7))
    assert "repeated_recorded 1" in faulty(check(good, orders=1))
    good.strikes = [
        {"at": 10.2, "fault": "stop_worker", "pid": 7, "held": [["a", 1]]},
        {"at": 12.55, "fault": "woken", "pid": 7, "since": 10.2, "one_writer": False},
    ]
    assert faulty(check(good, orders=1)) == []


def test_who_was_just_woken_may_come_a_moment_before_the_one_that_took_its_work(good: Evidence) -> None:
    good.provider.append(asked(1, 0, 9.9, 9))
    assert faulty(check(good, orders=1)) == ["unexplained_calls 1"]
    good.strikes += [
        {"at": 6.0, "fault": "stop_worker", "pid": 9, "held": []},
        {"at": 9.8, "fault": "woken", "pid": 9, "since": 6.0, "one_writer": False},
    ]
    assert faulty(check(good, orders=1)) == []


def test_a_sleeper_with_the_write_lock_of_sqlite_excuses_what_others_repeat(good: Evidence) -> None:
    good.strikes = [
        {"at": 10.2, "fault": "stop_worker", "pid": 9, "held": [["a", 1]]},
        {"at": 11.5, "fault": "woken", "pid": 9, "since": 10.2, "one_writer": False},
    ]
    assert faulty(check(good, orders=1)) == ["unexplained_calls 1"]
    assert check(good, orders=1).standstills == 0
    good.strikes[1]["one_writer"] = True
    figures = check(good, orders=1)
    assert (faulty(figures), figures.standstills, figures.recovery_p95_s) == ([], 1, None)


def test_nobody_need_take_what_another_sleepers_lock_kept_from_everybody(good: Evidence) -> None:
    good.strikes += [
        {"at": 10.3, "fault": "stop_worker", "pid": 9, "held": []},
        {"at": 11.6, "fault": "woken", "pid": 9, "since": 10.3, "one_writer": False},
    ]
    assert check(good, orders=1).recovery_p95_s == 1.5
    good.strikes[-1]["one_writer"] = True
    assert check(good, orders=1).recovery_p95_s is None


def test_nobody_need_take_what_was_in_its_last_commit_when_its_worker_fell_asleep(good: Evidence) -> None:
    good.strikes += [
        {"at": 13.95, "fault": "stop_worker", "pid": 8, "held": [["a", 2]]},
        {"at": 20.5, "fault": "woken", "pid": 8, "since": 13.95, "one_writer": False},
    ]
    good.dump["execution"][0]["finished_at"] = 20.5
    assert faulty(check(good, orders=1)) == []


def test_refusals_are_counted_where_they_were_said(good: Evidence) -> None:
    good.logs = ["WARNING a (claim 1): stopped: a (claim 1) is no longer claimed here", "INFO a: finished"]
    good.provider.append(asked(2, 1, 13.05, 8, status=429))
    figures = check(good, orders=1)
    assert (figures.rejected_writes, figures.refused_share) == (1, round(1 / 6, 4))
    assert figures.exercised["provider_429"] == 1


def damage_order(good: Evidence) -> None:
    for table in ("execution", "event", "iteration"):
        good.dump[table].clear()


def damage_status(good: Evidence) -> None:
    good.dump["execution"][0]["status"] = "in_progress"


def damage_end(good: Evidence) -> None:
    good.dump["execution"][0]["status"] = "failed"


def damage_ledger(good: Evidence) -> None:
    del good.dump["iteration"][1]


def damage_ledger_twice(good: Evidence) -> None:
    good.dump["iteration"].append(good.dump["iteration"][1])


def damage_completion(good: Evidence) -> None:
    good.dump["event"].append(event(10, "execution_attempt_completed", 2, 14.1))


def damage_terminal(good: Evidence) -> None:
    good.dump["event"].append(event(10, "execution_failed", 2, 14.1))


def damage_attempt_too_many(good: Evidence) -> None:
    good.dump["iteration"].append({**good.dump["iteration"][1], "n": 3})


def damage_fence(good: Evidence) -> None:
    good.dump["iteration"][0]["fence"] = 1


def damage_other_terminal(good: Evidence) -> None:
    good.dump["event"][-1]["kind"] = "execution_failed"


def damage_write_after_the_end(good: Evidence) -> None:
    good.dump["event"].append(event(10, "content", 2, 14.1))


def damage_answer(good: Evidence) -> None:
    good.dump["event"][3]["data"] = {}


def damage_bill(good: Evidence) -> None:
    del good.provider[3]


def damage_effect_lost(good: Evidence) -> None:
    del good.effects[1]


def damage_takeover(good: Evidence) -> None:
    good.strikes.append({"at": 12.0, "fault": "stop_worker", "pid": 8, "held": [["a", 2]]})


def damage_no_strike(good: Evidence) -> None:
    good.strikes.clear()


def damage_strike_long_after_the_answer(good: Evidence) -> None:
    good.provider[1].update(began=16.0, ended=16.1)
    good.strikes[0]["at"] = 15.0


def damage_no_terminal(good: Evidence) -> None:
    del good.dump["event"][-1]


def damage_gap(good: Evidence) -> None:
    del good.dump["event"][2]


def damage_claim(good: Evidence) -> None:
    good.dump["execution"][0]["claim_id"] = "c"


def damage_invariant(good: Evidence) -> None:
    good.dump["broken"]["the ledger has no gaps"] = 3


def damage_ledger_gap(good: Evidence) -> None:
    good.dump["execution"][0]["iteration"] = 3


def damage_desertion(good: Evidence) -> None:
    good.strikes.append({"at": 13.0, "fault": "deserted", "pid": 8, "role": "worker", "code": 1})


def damage_drain(good: Evidence) -> None:
    good.strikes.append({"at": 13.0, "fault": "ended", "pid": 8, "code": 0, "left": 1, "seconds": 2.0})


def damage_slow_drain(good: Evidence) -> None:
    good.strikes.append({"at": 13.0, "fault": "ended", "pid": 8, "code": 0, "left": 0, "seconds": 16.0})


def damage_repeat(good: Evidence) -> None:
    good.strikes[0]["at"] = 9.0


def damage_repeat_of_another(good: Evidence) -> None:
    good.strikes[0]["pid"] = 8


def damage_recorded(good: Evidence) -> None:
    good.provider.append(asked(1, 0, 13.8, 8, status="stall"))


def damage_request(good: Evidence) -> None:
    good.provider[1]["digest"] = "other words"


def damage_effect(good: Evidence) -> None:
    good.effects.append(("a:2:2:2:0:apply:y", 13.2, 8))


def damage_effect_key(good: Evidence) -> None:
    good.effects.append(("a:2:2:3:0:apply:y", 13.2, 8))


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (damage_order, "lost 1"),
        (damage_status, "stuck 1"),
        (damage_end, "wrong_end 1"),
        (damage_ledger, "lost 1"),
        (damage_ledger_twice, "twice 1"),
        (damage_completion, "twice 1"),
        (damage_terminal, "duplicate_terminal 1"),
        (damage_no_terminal, "wrong_end 1"),
        (damage_attempt_too_many, "twice 1"),
        (damage_fence, "late_commits 1"),
        (damage_other_terminal, "wrong_end 1"),
        (damage_write_after_the_end, "wrong_end 1"),
        (damage_answer, "unrecorded 1"),
        (damage_bill, "unrecorded 1"),
        (damage_effect_lost, "lost_effects 1"),
        (damage_takeover, "untaken 1"),
        (damage_no_strike, "unexplained_calls 1"),
        (damage_strike_long_after_the_answer, "unexplained_calls 1"),
        (damage_gap, "event_gaps 1"),
        (damage_claim, "left_claims 1"),
        (damage_invariant, "broken_invariants 1"),
        (damage_ledger_gap, "ledger_gaps 1"),
        (damage_desertion, "deserted 1"),
        (damage_drain, "unclean_ends 1"),
        (damage_slow_drain, "unclean_ends 1"),
        (damage_repeat, "unexplained_calls 1"),
        (damage_repeat_of_another, "unexplained_calls 1"),
        (damage_recorded, "repeated_recorded 1"),
        (damage_request, "changed_requests 1"),
        (damage_effect, "unexplained_effects 1"),
        (damage_effect_key, "extra_effects 1"),
    ],
)
def test_damage_is_found(good: Evidence, damage: Any, named: str) -> None:
    damage(good)
    assert named in faulty(check(good, orders=1))


def crowd(**changes: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A request that sixteen people answered, of whom one won and was heard."""
    line = {"execution": "a", "race": "answers", "given": 16, "won": ["Answer 3"]}
    heard = {"thread__execution__id": "a", "content": "You needed: it?\nA person answers: Answer 3"}
    row = {"status": "finished", "failure_code": None}
    return line | changes, {"message": [heard]}, {"a": row}


def test_one_winner_that_was_heard_is_right():
    line, dump, executions = crowd()
    assert people.judged([line], dump, executions) == people.Crowds(16, 0)


@pytest.mark.parametrize("won", [[], ["Answer 3", "Answer 4"], ["Answer 4"]])
def test_no_winner_two_winners_and_one_that_was_not_heard_are_wrong(won: list[str]):
    line, dump, executions = crowd(won=won)
    assert people.judged([line], dump, executions).wrong == 1


@pytest.mark.parametrize(
    ("race", "won", "status", "code", "wrong"),
    [
        ("cancel", [], "cancelled", None, 0),
        ("cancel", ["Answer 3"], "cancelled", None, 0),
        ("cancel", ["Answer 3", "Answer 4"], "cancelled", None, 1),
        ("expiry", [], "failed", "request_expired", 0),
        ("expiry", ["Answer 3"], "failed", "request_expired", 1),
        ("answers", [], "cancelled", None, 1),
        ("answers", [], "failed", "request_expired", 1),
    ],
)
def test_what_else_may_win_a_race_is_a_cancel_or_the_expiry(
    race: str, won: list[str], status: str, code: str | None, wrong: int
):
    line, dump, executions = crowd(race=race, won=won)
    executions["a"] |= {"status": status, "failure_code": code}
    assert people.judged([line], dump, executions).wrong == wrong


def test_the_wait_for_a_person_ends_with_the_claim_that_goes_on():
    told = [
        event(1, "execution_started", 1, 10.0, fence=1),
        event(2, "human_request_answered", 1, 20.0, undecided=0),
        event(3, "mission_loop_resumed", 1, 20.0),
        event(4, "mission_iteration_started", 2, 20.4, fence=2),
    ]
    assert people.waits(told) == [pytest.approx(0.4)]

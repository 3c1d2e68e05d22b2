"""The seed decides what strikes when, and what it is held to."""

import pytest

from tests.faults.harness.checker import MUST_BE_ZERO, Figures
from tests.faults.harness.nemesis import schedule
from tests.faults.harness.spec import BACKENDS, RUNS, applies, spec_for
from tests.faults.harness.verdict import missed

FAULTS = {"kill_worker": 9, "kill_dispatcher": 3}


def test_one_seed_gives_one_schedule_and_another_seed_another() -> None:
    assert schedule(FAULTS, 1) == schedule(FAULTS, 1) != schedule(FAULTS, 2)


def test_every_strike_comes_in_order_while_there_is_work() -> None:
    strikes = schedule(FAULTS, 3)
    points = [strike.progress for strike in strikes]
    assert points == sorted(points) and points[0] > 0 and points[-1] < 0.95
    assert sorted(strike.fault for strike in strikes) == ["kill_dispatcher"] * 3 + ["kill_worker"] * 9


def test_every_run_has_a_size_where_it_applies() -> None:
    for backend in BACKENDS:
        for run in RUNS:
            if run != "F0" and applies(run, backend):
                small, normal, full = (
                    spec_for(run, backend, 1, size).iterations for size in ("small", "normal", "full")
                )
                assert small <= normal <= full


def test_a_run_whose_faults_did_not_strike_is_not_accepted() -> None:
    spec = spec_for("F1", "sqlite", 1, "small")
    figures = Figures(recovery_p50_s=1.0, exercised={"kill_worker": 2})
    assert missed(spec, figures) == [f"kill_worker struck 2 times of {spec.faults['kill_worker']}"]


def test_a_slow_recovery_is_not_accepted() -> None:
    spec = spec_for("F1", "sqlite", 1)
    slow = Figures(recovery_p50_s=1.0, recovery_p95_s=3.5, exercised=dict(spec.faults))
    assert missed(spec, slow) == ["recovery p95 3.50 s > 3 s"]
    assert missed(spec_for("F1", "sqlite", 1, "small"), slow) == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_promised_sizes_and_kills_are_what_is_run(backend: str) -> None:
    spec = spec_for("F1", backend, 1)
    large = backend in {"postgres+valkey", "sqlite"}
    assert (spec.executions, spec.attempts) == ((200, 20) if large else (60, 10))
    too_few = {**spec.faults, "kill_worker": 59 if large else 19}
    figures = Figures(recovery_p95_s=1.0, exercised=too_few)
    assert missed(spec, figures) == [
        f"kill_worker struck {59 if large else 19} times of {66 if large else 22}"
    ]
    assert spec_for("F4", backend, 1).recovery == spec_for("F4", backend, 1).agency["LEASE_SECONDS"] + 2.0


@pytest.mark.parametrize(
    ("run", "figures", "said"),
    [
        ("F3", Figures(exercised={"duplicate_wake_up": 5}), "wake-ups were not duplicated"),
        ("F3", Figures(provider_calls=3, provider_needed=2), "1 extra provider calls"),
        ("F4", Figures(), "no late write was refused, so nothing shows that one would be"),
        ("F1", Figures(), "recovery p95 was not measured"),
        ("cancel", Figures(), "cancel p95 was not measured"),
        ("cancel", Figures(cancel_p95_s=2.1), "cancel p95 2.10 s > 2 s"),
        ("F7", Figures(), "the provider gave no 429"),
        ("F7", Figures(refused_share=0.06), "6.0% of the requests were answered 429"),
        *(("F3", Figures(**{name: 1}), f"{name} 1") for name in MUST_BE_ZERO),
    ],
)
def test_what_is_missed_is_said(run: str, figures: Figures, said: str) -> None:
    assert said in missed(spec_for(run, "postgres+valkey", 1), figures)

"""The benchmarks say what they measured: medians, targets either way round, and who is left out."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import environments
from benchmarks.report import Row, show, write
from benchmarks.rounds import AtLeast, Case, Figures, Worker, measure


def test_every_case_is_measured_in_as_many_rounds_on_every_subject() -> None:
    with Worker("bare", Path(sys.executable)) as floor, Worker("agency-sync", Path(sys.executable)) as ours:
        assert floor.hello() == "" and ours.hello()
        case = Case("5 steps", {"case": "steps", "count": 5})
        figures = measure([floor, ours], [case], rounds=2)
    for subject in ("bare", "agency-sync"):
        assert len(figures.samples[subject, "5 steps", "step"]) == 2
        assert (figures.of(subject, "5 steps", "step") or 0) > 0


def test_a_subject_that_does_not_start_says_why() -> None:
    with Worker("no-such-subject", Path(sys.executable)) as worker:
        assert worker.hello() is None
        assert "no_such_subject" in worker.fault()


@pytest.mark.slow
def test_a_peer_that_cannot_be_installed_is_left_out_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "requirements-ghost.in").write_text("./nowhere\n", encoding="utf-8")
    monkeypatch.setattr(environments, "HERE", tmp_path)
    reason = environments.python_of("ghost", tmp_path)
    assert isinstance(reason, str) and "nowhere" in reason
    assert not (tmp_path / "bench-envs" / "ghost" / "installed.txt").exists()


def test_a_target_is_an_upper_or_a_lower_bound() -> None:
    assert Row("a step", 90, "µs CPU", 100).ok
    assert not Row("a step", 110, "µs CPU", 100).ok
    assert Row("to ours", 3.2, "times", 3, more_is_better=True).ok
    assert not Row("to ours", 2.9, "times", 3, more_is_better=True).ok
    assert Row("a step", 90, "µs CPU").ok is None


def test_the_figures_are_written_in_the_documented_form(tmp_path: Path) -> None:
    rows = [
        Row("a step", 90, "µs CPU", 100, 30, {"agno": 300.0}),
        Row("to ours", 3, "times", 3, None, {}, True),
    ]
    write(rows, tmp_path / "state" / "bench.json")
    written = json.loads((tmp_path / "state" / "bench.json").read_text(encoding="utf-8"))
    assert written[0] == {
        "name": "a step",
        "value": 90,
        "unit": "µs CPU",
        "target": 100,
        "floor": 30,
        "peers": {"agno": 300.0},
        "ok": True,
    }
    assert written[1]["unit"] == "times, at least" and written[1]["ok"] is True


def test_the_table_shows_ratios_and_what_was_missed(capsys: pytest.CaptureFixture[str]) -> None:
    show({"agency": [100.0], "agno": [350.0], "gone": [None]}, ["a step"], [Row("a step", 110, "µs", 100)])
    said = capsys.readouterr().out
    assert "350 (3.5×)" in said and "–" in said
    assert "Missed: a step" in said


def test_a_run_that_takes_too_long_is_cut_off_and_told_so() -> None:
    with Worker("bare", Path(sys.executable)) as floor:
        assert floor.hello() is not None
        cases = [
            Case("long", {"case": "steps", "count": 10**7, "seconds": 0.2}),
            Case("crowd", {"case": "crowd", "runs": 2, "count": 10**7, "delay": 0.01, "seconds": 0.2}),
            Case("short", {"case": "steps", "count": 5, "seconds": 60}),
        ]
        figures = measure([floor], cases, rounds=1)
    cut = figures.of("bare", "long", "step")
    assert isinstance(cut, AtLeast) and 0 < cut.steps < 10**7
    assert isinstance(figures.of("bare", "crowd", "wall"), AtLeast)
    assert not isinstance(figures.of("bare", "short", "step"), AtLeast)


def test_what_was_cut_off_is_shown_as_more_than_and_written_with_its_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = Figures()
    figures.add("strands", "1000 steps", {"step": 50_000.0, "cut": 412})
    cut = figures.of("strands", "1000 steps", "step")
    assert cut is not None
    row = Row("a step of 1000", 100, "µs CPU", peers={"strands": cut, "agno": 300.0})
    show({"agency": [100.0], "strands": [cut]}, ["a step"], [row])
    assert "> 50,000 (500×), cut at 412" in capsys.readouterr().out
    write([row], tmp_path / "bench.json")
    written = json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))[0]
    assert written["peers"] == {"strands": 50_000.0, "agno": 300.0} and written["cut"] == {"strands": 412}

"""The report never shows a zero that nobody has counted."""

import io
import json
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.faults.harness.checker import Figures
from tests.faults.harness.report import TOTALS, Report, summed

BROKEN: dict[str, Any] = {"missed": ["the run broke: no database"], "exercised": {}}
POINTS: dict[str, Any] = {"missed": [], "exercised": {"fail_point": 40}, "seconds": 60.0}


def entry(**figures: Any) -> dict[str, Any]:
    return {**Figures(**figures).as_dict(), "missed": [], "versions": {}}


def printed(report: Report) -> str:
    console = Console(file=io.StringIO(), width=160)
    report.print(console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_figures_of_a_backend_are_those_of_its_runs() -> None:
    kills = entry(missions=3, recovery_p50_s=0.9, recovery_p95_s=1.5, exercised={"kill_worker": 2})
    total = summed({"F0": POINTS, "F1": kills, "F3": entry(missions=4, lost=1)})
    assert (total["missions"], total["lost"], total["recovery_p95_s"]) == (7, 1, 1.5)
    assert total["exercised"] == {"fail_point": 40, "kill_worker": 2} and total["accepted"]


def test_a_run_that_broke_has_lost_nobody_knows_how_much() -> None:
    total = summed({"F1": entry(missions=3), "F2": BROKEN})
    assert {total[name] for name in TOTALS} == {None} and not total["accepted"]


def test_of_fail_points_alone_no_zero_is_said() -> None:
    assert summed({"F0": POINTS})["lost"] is None


def test_figures_of_other_code_are_named_as_such(tmp_path: Path) -> None:
    path = tmp_path / "faults.json"
    Report(path, 1, "aaaa, normal").add("sqlite", "F1", entry(missions=3))
    later = Report(path, 1, "bbbb, normal")
    later.add("sqlite", "F4", entry(missions=4))
    said = printed(later)
    assert "F1: not of this code and size, but of aaaa, normal" in said and "F4: not of this" not in said
    assert json.loads(path.read_text())["backends"]["sqlite"]["missions"] == 7


def test_the_file_has_the_agreed_shape(tmp_path: Path) -> None:
    path = tmp_path / "faults.json"
    Report(path, 1, "aaaa, normal").add("sqlite", "F1", entry(recovery_p50_s=1.0, recovery_p95_s=2.0))
    written = json.loads(path.read_text())
    assert {"machine", "seed", "backends"} <= written.keys()
    agreed = {"missions", "iterations", "lost", "twice", "stuck", "duplicate_terminal", "provider_calls"}
    agreed |= {"provider_needed", "recovery_p50_s", "recovery_p95_s", "rejected_writes", "exercised"}
    assert agreed <= written["backends"]["sqlite"].keys()

"""The fault harness: `make faults`, or `python -m tests.faults.harness`.

Environment: `BACKEND=` and `RUN=` choose pieces (several are separated by commas; the rest of the report
stays), `SEED=` another schedule, `FULL=1` the large sizes everywhere, `SMALL=1` those for CI. Exit code 1
if anything is not accepted, or a backend that was named cannot be had. Figures go to
`.agency/faults.json`, logs and dumps to `.agency/faults/`.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.faults.harness import evidence, points
from tests.faults.harness.aside import ASIDE
from tests.faults.harness.checker import check
from tests.faults.harness.report import Report
from tests.faults.harness.run import UNAVAILABLE
from tests.faults.harness.spec import BACKENDS, RUNS, Spec, applies, spec_for
from tests.faults.harness.verdict import missed

LONGEST = 1200.0
WIDE = 160
"""Columns of a report that goes into a file."""


def main(environ: dict[str, str]) -> int:
    home = Path(environ.get("AGENCY_HOME") or ".agency").absolute()
    seed = int(environ.get("SEED") or 1)
    size = "full" if environ.get("FULL") else "small" if environ.get("SMALL") else "normal"
    console = Console(width=None if sys.stdout.isatty() else WIDE)
    path = home / ("faults-small.json" if size == "small" else "faults.json")
    report = Report(path, seed, f"{_commit()}, {size}")
    chosen = _chosen(environ.get("RUN"), (*RUNS, *ASIDE))
    failed = False
    for backend in _chosen(environ.get("BACKEND"), BACKENDS):
        for run in (one for one in chosen if one in RUNS and applies(one, backend)):
            place = home / "faults" / f"{backend}-{run}"
            entry = _one(run, backend, seed, size, place, console)
            report.add(backend, run, entry)
            # What was asked for by name and cannot be had here is no success.
            failed = (
                failed or bool(entry.get("missed")) or ("skipped" in entry and bool(environ.get("BACKEND")))
            )
    for name in (
        one for one in chosen if one in ASIDE and (environ.get("RUN") or not environ.get("BACKEND"))
    ):
        entry = _said(name, ASIDE[name], console)
        report.add_aside(name, entry)
        failed = failed or bool(entry.get("missed"))
    report.print(console)
    return int(failed)


def _commit() -> str:
    """The commit that is run, with a mark if files differ from it."""
    asked = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude", "*"],
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip() or "no history"


def _chosen(given: str | None, known: tuple[str, ...]) -> list[str]:
    """What an environment variable names, or all; an unknown name ends the program with the known ones."""
    wanted = [one.strip() for one in (given or "").split(",") if one.strip()]
    for one in wanted:
        if one not in known:
            sys.exit(f"there is no {one!r}; known: {', '.join(known)}")
    return [one for one in known if one in wanted] if wanted else list(known)


def _one(run: str, backend: str, seed: int, size: str, home: Path, console: Console) -> dict[str, Any]:
    """Run it in a process of its own and judge what it left."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    if run == "F0":
        return _said(f"{backend} F0: every fail point alone", lambda: points.run(backend, home), console)
    spec = spec_for(run, backend, seed, size)
    title = f"{backend} {run}: {spec.executions or spec.hanging} x {spec.attempts}"
    return _said(title, lambda: _struck(spec, home), console)


def _said(title: str, do: Callable[[], dict[str, Any]], console: Console) -> dict[str, Any]:
    """Do it between two lines that say what is done and what came of it."""
    console.print(f"{title} …", highlight=False)
    began = time.monotonic()
    entry = do()
    said = entry.get("skipped") or "; ".join(entry["missed"]) or "accepted"
    console.print(f"  {said} ({time.monotonic() - began:.0f} s)", highlight=False, markup=False)
    return entry


def _struck(spec: Spec, home: Path) -> dict[str, Any]:
    with (home / "run.log").open("wb") as log:
        command = [sys.executable, "-m", "tests.faults.harness.run", str(home), json.dumps(spec.as_dict())]
        try:
            code = subprocess.run(
                command, stdout=log, stderr=subprocess.STDOUT, timeout=LONGEST, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            return {"missed": [f"the run had not ended after {LONGEST:g} s"], "exercised": {}}
    said = (home / "run.log").read_text(errors="replace").strip()
    if code == UNAVAILABLE:
        return {"skipped": said}
    if code:
        return {"missed": [f"the run broke: {said[-300:]}"], "exercised": {}}
    left = evidence.read(home)
    figures = check(left, spec.executions + spec.hanging)
    found = missed(spec, figures)
    return figures.as_dict() | {"missed": found, "faults": spec.faults, "versions": left.dump["versions"]}


if __name__ == "__main__":
    try:
        sys.exit(main(dict(os.environ)))
    except KeyboardInterrupt:
        sys.exit(130)

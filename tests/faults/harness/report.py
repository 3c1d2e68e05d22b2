"""The report: one table per backend, and `faults.json`, which a later run of a piece resumes."""

import json
import os
import platform
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.faults.harness.spec import BACKENDS, RUNS, applies

TOTALS = (
    *("missions", "iterations", "lost", "twice", "stuck", "duplicate_terminal"),
    *("provider_calls", "provider_needed", "rejected_writes"),
)
ROWS = (
    ("executions", "missions"),
    ("iterations", "iterations"),
    ("lost", "lost"),
    ("committed twice", "twice"),
    ("stuck", "stuck"),
    ("duplicate terminal events", "duplicate_terminal"),
    ("wrong end", "wrong_end"),
    ("gaps in events / ledger", ("event_gaps", "ledger_gaps")),
    ("commits by a claim that was lost", "late_commits"),
    ("provider calls / needed", ("provider_calls", "provider_needed")),
    ("share of requests answered 429", "refused_share"),
    ("repeats without a strike", "unexplained_calls"),
    ("repeats of a recorded answer", "repeated_recorded"),
    ("answers not on record or on no bill", "unrecorded"),
    ("effect calls / distinct / missing", ("effect_calls", "effects", "lost_effects")),
    ("rejected late writes", "rejected_writes"),
    ("recovery p50 / p95 / max, s", ("recovery_p50_s", "recovery_p95_s", "recovery_max_s")),
    ("struck claims that nobody took", "untaken"),
    ("struck twice in an attempt p95, s", "alone_p95_s"),
    ("sleeps with the write lock (not timed)", "standstills"),
    ("submit to first claim p95, s", "start_p95_s"),
    ("cancel to stopped p95, s", "cancel_p95_s"),
    ("answers given / requests with a wrong winner", ("answers_given", "wrong_winners")),
    ("answer to next claim p95, s", "answered_p95_s"),
    ("seconds", "seconds"),
)


class Report:
    """What is known of all runs with one seed; every run that ends is written down at once.

    `source` says what is run now, the commit and the size; runs of another source stay and are named.
    """

    def __init__(self, path: Path, seed: int, source: str) -> None:
        self._path, self._source = path, source
        known = json.loads(path.read_text()) if path.exists() else {}
        same = known.get("seed") == seed
        self.data: dict[str, Any] = {
            "machine": machine(),
            "seed": seed,
            "backends": known.get("backends", {}) if same else {},
            "aside": known.get("aside", {}) if same else {},
        }

    def add(self, backend: str, run: str, entry: dict[str, Any]) -> None:
        """Put a run's figures in, or `{"skipped": why}`, and sum the backend up anew."""
        told = {**entry, "source": self._source}
        runs = self.data["backends"].get(backend, {}).get("runs", {}) | {run: told}
        self.data["backends"][backend] = summed(runs) | {"runs": runs}
        self._write()

    def add_aside(self, name: str, entry: dict[str, Any]) -> None:
        """Put in what is shown beside the backends."""
        self.data["aside"][name] = entry
        self._write()

    def _write(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(".draft")
        draft.write_text(json.dumps(self.data, indent=1))
        draft.rename(self._path)

    def print(self, console: Console) -> None:
        for backend in BACKENDS:
            if backend in self.data["backends"]:
                _print(console, backend, self.data["backends"][backend], self._source)
        for line in aside(self.data["aside"]):
            console.print(line, highlight=False, markup=False)
        console.print(f"seed {self.data['seed']}; {self.data['machine']}", highlight=False)


def aside(known: dict[str, dict[str, Any]]) -> list[str]:
    """A sentence for each thing beside the backends."""
    lines = [f"{name}: {text}" for name, entry in known.items() for text in entry.get("missed", [])]
    naive, upgrade = known.get("naive", {}), known.get("upgrade", {})
    if "lost" in naive:
        paid = f"{naive['provider_calls']} provider calls for {naive['provider_needed']}"
        lost = f"{naive['lost']} iterations lost, {naive['twice']} committed twice"
        lines.append(f"The naive design under kills, a flush and countdowns: {lost}, {paid}")
    if upgrade.get("from") and not upgrade["missed"]:
        lines.append(
            f"A database and a journal left in flight by commit {upgrade['from']} went on to the right end"
        )
    return lines


def machine() -> str:
    return (
        f"{platform.system()} {platform.release()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    )


def summed(runs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The backend's figures over its runs; recovery is that of the kills.

    A run that broke has no figures, so the sums are not known: `None`, and never a zero.
    """
    ran = [entry for entry in runs.values() if "skipped" not in entry]
    counted = [entry for run, entry in runs.items() if run != "F0" and "skipped" not in entry]
    known = all("missions" in entry for entry in counted)
    total: dict[str, Any] = {
        name: sum(entry[name] for entry in counted) if known and counted else None for name in TOTALS
    }
    total["accepted"] = all(not entry["missed"] for entry in ran)
    kills = runs.get("F1", {})
    total |= {name: kills.get(name) for name in ("recovery_p50_s", "recovery_p95_s")}
    exercised: dict[str, int] = {}
    for entry in ran:
        for fault, times in entry.get("exercised", {}).items():
            exercised[fault] = exercised.get(fault, 0) + times
    versions = {name: value for entry in ran for name, value in entry.get("versions", {}).items()}
    return total | {"exercised": exercised, "versions": versions}


def _print(console: Console, backend: str, known: dict[str, Any], source: str) -> None:
    runs: dict[str, dict[str, Any]] = known["runs"]
    versions = ", ".join(f"{name} {version}" for name, version in sorted(known.get("versions", {}).items()))
    names = [run for run in RUNS if run in runs and "skipped" not in runs[run]]
    table = Table(title=f"{backend} ({versions})" if versions else backend, title_justify="left")
    table.add_column("", no_wrap=True)
    for name in names:
        table.add_column(name, justify="right")
    for label, keys in ROWS:
        cells = [_cell(runs[name], keys) for name in names]
        if any(cell.strip("– /") for cell in cells):
            table.add_row(label, *cells)
    table.add_section()
    for fault in sorted({fault for name in names for fault in runs[name]["exercised"]}):
        table.add_row(
            f"struck: {fault.replace('_', ' ')}",
            *(str(runs[name]["exercised"].get(fault, "–")) for name in names),
        )
    table.add_section()
    table.add_row("accepted", *("yes" if not runs[name]["missed"] else "[red]no[/]" for name in names))
    console.print(table)
    for run in RUNS:
        for line in _remarks(run, backend, runs.get(run), source):
            console.print(f"  {run}: {line}", highlight=False, markup=False)


def _remarks(run: str, backend: str, entry: dict[str, Any] | None, source: str) -> list[str]:
    """What the table cannot say: why a run is not there, what it has missed, or that it is of other code."""
    if not applies(run, backend):
        return ["does not apply here"]
    if entry is None:
        return ["not run yet"]
    said = [f"not run: {entry['skipped']}"] if "skipped" in entry else list(entry["missed"])
    other = entry.get("source")
    return said if other == source else [*said, f"not of this code and size, but of {other or 'unknown'}"]


def _cell(entry: dict[str, Any], keys: str | tuple[str, ...]) -> str:
    names = (keys,) if isinstance(keys, str) else keys
    return " / ".join("–" if entry.get(name) is None else f"{entry[name]:g}" for name in names)

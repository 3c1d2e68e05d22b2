"""Reads what a run has left in its directory."""

import json
from pathlib import Path
from typing import Any

from tests.faults.harness import effects
from tests.faults.harness.checker import Evidence


def read(home: Path) -> Evidence:
    return Evidence(
        dump=json.loads((home / "dump.json").read_text()),
        provider=lines(home / "provider.jsonl"),
        effects=effects.calls(home / "effects.sqlite3"),
        strikes=lines(home / "nemesis.jsonl"),
        answers=lines(home / "answers.jsonl"),
        logs=[
            line
            for path in sorted(home.glob("process-*.log"))
            for line in path.read_text(errors="replace").splitlines()
        ],
    )


def lines(path: Path) -> list[dict[str, Any]]:
    """A log of JSON lines; the last one may have been cut."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]

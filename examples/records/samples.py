"""The papers of the demo, each with the answer that is expected of it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DOCUMENTS = Path(__file__).with_name("documents")


@dataclass(frozen=True, slots=True)
class Sample:
    """A document and its right record. `input` is what to submit to `extract-records`."""

    name: str
    text: str
    expected: dict[str, Any]

    @property
    def input(self) -> dict[str, Any]:
        return {"document": self.name, "text": self.text}


def samples() -> list[Sample]:
    """All documents, sorted by name."""
    return [_read(path) for path in sorted(DOCUMENTS.glob("*.txt"))]


def _read(path: Path) -> Sample:
    expected = json.loads(path.with_suffix(".expected.json").read_text(encoding="utf-8"))
    return Sample(path.stem, path.read_text(encoding="utf-8"), expected)

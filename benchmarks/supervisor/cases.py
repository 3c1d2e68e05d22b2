"""The labelled transcripts: all but `held_out.jsonl` may be read while prompts are written.

The two halves are `tuned.jsonl`, short and plain, and `held_out.jsonl`, by another hand than all others. On
`fitted/` and the tuned half, probes are fitted.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agency.enums import DecisionStatus, MessageRole
from agency.mission.placeholders import Counters
from agency.mission.prompt import Matter
from agency.mission.transcript import LOCAL_CAPS, Line, transcribe

HERE = Path(__file__).parent
HALVES = ("tuned", "held_out")
FITTED = ("tuned", *sorted(f"fitted/{path.stem}" for path in (HERE / "fitted").glob("*.jsonl")))


@dataclass(frozen=True, slots=True)
class Case:
    """One transcript and the status that a careful person would decide on."""

    id: str
    half: str
    label: DecisionStatus
    tags: frozenset[str]
    matter: Matter
    twin_of: str | None = None


def load(half: str) -> list[Case]:
    """The cases of a half or of one of `FITTED`; none if it is not there."""
    path = HERE / f"{half}.jsonl"
    if not path.exists():
        return []
    return [_case(half, json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines() if line]


def short_ones(cases: list[Case], count: int = 20) -> list[Case]:
    """`count` short cases, as many of each status."""
    each = count // len(DecisionStatus)
    short = [case for case in cases if "short" in case.tags]
    return [
        case for status in DecisionStatus for case in [one for one in short if one.label == status][:each]
    ]


def _case(half: str, told: dict[str, Any]) -> Case:
    lines = [
        Line(MessageRole(one["role"]), one["content"], one.get("iteration", 0), one.get("supervisor", False))
        for one in told["messages"]
    ]
    matter = Matter(
        objective=told["objective"],
        counters=Counters(told["iteration"], told["max_iterations"]),
        loop_prompt=told.get("loop_prompt") or "Decide how the mission goes on.",
        last_summary=told.get("last_summary") or "",
        transcript=transcribe(lines, LOCAL_CAPS),
    )
    return Case(
        told["id"],
        half,
        DecisionStatus(told["label"]),
        frozenset(told.get("tags", ())),
        matter,
        told.get("twin_of"),
    )

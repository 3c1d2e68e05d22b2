"""Fits the probe that reads a small model's verdict, on all transcripts that are not held out.

`python -m benchmarks.supervisor.calibrate local:default` has the model read them (about an hour; a run that
was ended goes on where it was), says how right a probe is on transcripts that it has not seen, and writes it
to where `judging` finds it. Beginnings and tokens stay as they are in the file; the tokens were drawn by lot
once: the logits of many tokens, whichever they are, tell the model's state.
"""

import argparse
import json
import random
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from agency.agent.providers.local_probe import Probe, probe_of
from agency.enums import DecisionStatus
from agency.mission.judging import PROBES
from benchmarks.supervisor import ridge
from benchmarks.supervisor.cases import FITTED, load
from benchmarks.supervisor.readings import Reading, readings

PENALTY = 1.5
TENTHS = 10
DIGITS = 4
STATUSES = list(DecisionStatus)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.supervisor.calibrate", description=__doc__)
    parser.add_argument("model", choices=sorted(PROBES))
    model = parser.parse_args(argv).model
    probe = probe_of(PROBES[model])
    read = list(readings(model, probe, [case for half in FITTED for case in load(half)]))
    print(f"tenths left out: {told(read, tenths(len(read)))}")
    print(f"files left out: {told(read, by_file(read))}")
    package, _, path = PROBES[model].partition(":")
    write(Path(str(files(package).joinpath(path))), probe, fitted(read))


def fitted(read: Sequence[Reading]) -> dict[str, list[float]]:
    """A row for each status: an offset, then a weight for each logit."""
    rows = ridge.fit([one.logits for one in read], _targets(read), PENALTY)
    return {status.value: row for status, row in zip(STATUSES, rows, strict=True)}


def told(read: Sequence[Reading], parts: Sequence[Sequence[int]]) -> str:
    """How right probes are that have not seen the part they judge."""
    said = ridge.left_out([one.logits for one in read], _targets(read), PENALTY, parts)
    pairs = [(one.label, STATUSES[scores.index(max(scores))]) for one, scores in zip(read, said, strict=True)]
    open_ones = [status for label, status in pairs if label is not DecisionStatus.COMPLETE]
    blocked = [status for label, status in pairs if label is DecisionStatus.BLOCKED]
    right = sum(label is status for label, status in pairs) / len(pairs)
    false = open_ones.count(DecisionStatus.COMPLETE) / len(open_ones)
    found = blocked.count(DecisionStatus.BLOCKED) / len(blocked)
    return f"{right:.1%} right, false completes {false:.1%}, blocked found {found:.1%} of {len(read)}"


def tenths(count: int) -> list[list[int]]:
    order = list(range(count))
    random.Random(0).shuffle(order)
    return [order[tenth::TENTHS] for tenth in range(TENTHS)]


def by_file(read: Sequence[Reading]) -> list[list[int]]:
    return [[place for place, one in enumerate(read) if one.half == half] for half in FITTED]


def write(path: Path, probe: Probe, rows: dict[str, list[float]]) -> None:
    short = {label: [float(f"{value:.{DIGITS}g}") for value in row] for label, row in rows.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"begun": probe.begun, "tokens": probe.tokens, "rows": short}, separators=(",", ":"))
    path.write_text(text.replace('],"', '],\n"') + "\n", encoding="utf-8")
    print(f"Written to {path.name}")


def _targets(read: Sequence[Reading]) -> list[list[float]]:
    return [[float(one.label is status) for status in STATUSES] for one in read]


if __name__ == "__main__":
    main()

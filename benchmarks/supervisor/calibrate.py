"""Fits how a small model's odds are weighed, on all but the held-out half; prints rows for `calibration.py`.

`python -m benchmarks.supervisor.calibrate local:default`: multinomial logistic regression with a ridge, by
plain gradient descent on standardised features; what it says of itself is measured by leaving tenths out.
"""

import argparse
import math
import random
from collections.abc import Sequence

from agency.agent.providers import resolve_model
from agency.enums import DecisionStatus
from agency.mission.judging import VERDICTS, features, scored
from benchmarks.supervisor.cases import FITTED, load
from benchmarks.supervisor.remembered import Remembered, answers_of

RIDGE = 0.005
STEPS = 3_000
RATE = 0.5
FOLDS = 10
STATUSES = list(VERDICTS.values())
Row = list[float]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.supervisor.calibrate", description=__doc__)
    parser.add_argument("model", help="local:default or local:small")
    model = parser.parse_args(argv).model
    client = Remembered(resolve_model(model), answers_of(model))
    cases = [case for half in FITTED for case in load(half)]
    read: list[tuple[Row, DecisionStatus]] = []
    for number, case in enumerate(cases, start=1):
        read.append((features(client, case.matter), case.label))
        print(f"{model} {number}/{len(cases)} {case.id}", flush=True)
    _tell(cases_left_out(read))
    for status, row in zip(STATUSES, fitted(read), strict=True):
        print(f"({', '.join(f'{weight:.2f}' for weight in row)}),  # {status.value}")


def cases_left_out(read: Sequence[tuple[Row, DecisionStatus]]) -> list[tuple[DecisionStatus, DecisionStatus]]:
    """What is right and what was decided by weights that have not seen the case."""
    order = list(range(len(read)))
    random.Random(0).shuffle(order)
    found: list[tuple[DecisionStatus, DecisionStatus]] = []
    for fold in range(FOLDS):
        out = set(order[fold::FOLDS])
        weights = fitted([one for place, one in enumerate(read) if place not in out])
        found += [(read[place][1], decided(weights, read[place][0])) for place in sorted(out)]
    return found


def decided(weights: Sequence[Row], read: Row) -> DecisionStatus:
    scores = [scored(row, read) for row in weights]
    return STATUSES[scores.index(max(scores))]


def fitted(read: Sequence[tuple[Row, DecisionStatus]]) -> list[Row]:
    """A row of weights for each status, for features as they come: an offset first."""
    width, n = len(read[0][0]), len(read)
    means = [sum(row[k] for row, _ in read) / n for k in range(width)]
    spreads = [math.sqrt(sum((row[k] - means[k]) ** 2 for row, _ in read) / n) or 1.0 for k in range(width)]
    standard = [
        ([1.0, *((row[k] - means[k]) / spreads[k] for k in range(width))], STATUSES.index(label))
        for row, label in read
    ]
    weights = [[0.0] * (width + 1) for _ in STATUSES]
    for _ in range(STEPS):
        _descend(weights, standard)
    return [
        [
            row[0] - sum(row[k + 1] * means[k] / spreads[k] for k in range(width)),
            *(row[k + 1] / spreads[k] for k in range(width)),
        ]
        for row in weights
    ]


def _descend(weights: list[Row], standard: Sequence[tuple[Row, int]]) -> None:
    slopes = [[0.0 if k == 0 else RIDGE * value for k, value in enumerate(row)] for row in weights]
    for values, label in standard:
        scores = [sum(a * b for a, b in zip(row, values, strict=True)) for row in weights]
        highest = max(scores)
        likely = [math.exp(score - highest) for score in scores]
        total = sum(likely)
        for status, slope in enumerate(slopes):
            error = (likely[status] / total - (status == label)) / len(standard)
            for k, value in enumerate(values):
                slope[k] += error * value
    for row, slope in zip(weights, slopes, strict=True):
        for k, value in enumerate(slope):
            row[k] -= RATE * value


def _tell(pairs: Sequence[tuple[DecisionStatus, DecisionStatus]]) -> None:
    right = sum(label is status for label, status in pairs) / len(pairs)
    open_ones = [status for label, status in pairs if label is not DecisionStatus.COMPLETE]
    false = sum(status is DecisionStatus.COMPLETE for status in open_ones) / len(open_ones)
    blocked = [status for label, status in pairs if label is DecisionStatus.BLOCKED]
    found = sum(status is DecisionStatus.BLOCKED for status in blocked) / len(blocked)
    print(f"left out: {right:.0%} right, false completes {false:.0%}, blocked found {found:.0%}")


if __name__ == "__main__":
    main()

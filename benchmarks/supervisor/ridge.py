"""Ridge regression on few rows of many numbers, solved by rows: what a linear probe is fitted with.

Written out, since a library of linear algebra would be the only use of one in the project.
"""

import math
from collections.abc import Sequence
from operator import mul

Rows = Sequence[Sequence[float]]


def fit(rows: Rows, targets: Rows, penalty: float) -> list[list[float]]:
    """For each target an offset, then a weight for each number of a row as it comes.

    Each number counts by how far it is from its mean, in its own spread.
    """
    means, spreads = _moments(rows)
    standard = [_standard(row, means, spreads) for row in rows]
    duals = solve(_kernel(standard), targets, penalty)
    found: list[list[float]] = []
    columns = list(zip(*standard, strict=True))
    for offset, dual in duals:
        weights = [
            _dot(dual, column) / spread / len(means) for column, spread in zip(columns, spreads, strict=True)
        ]
        found.append([offset - _dot(weights, means), *weights])
    return found


def left_out(rows: Rows, targets: Rows, penalty: float, parts: Sequence[Sequence[int]]) -> list[list[float]]:
    """What each row is said to be by a fit on the rows of other parts; rows in no part are always seen.

    Means and spreads are those of all rows; the targets of a part that is left out count for nothing.
    """
    means, spreads = _moments(rows)
    kernel = _kernel([_standard(row, means, spreads) for row in rows])
    said: list[list[float]] = [[] for _ in rows]
    for part in parts:
        out = set(part)
        seen = [place for place in range(len(rows)) if place not in out]
        duals = solve(_cut(kernel, seen, seen), [targets[place] for place in seen], penalty)
        for place in part:
            near = [kernel[place][other] for other in seen]
            said[place] = [offset + _dot(dual, near) for offset, dual in duals]
    return said


def solve(kernel: Rows, targets: Rows, penalty: float) -> list[tuple[float, list[float]]]:
    """For each target an offset, and how much each row has to say."""
    n, width = len(kernel), len(targets[0])
    system = [
        [*(value + penalty * (one == place) for one, value in enumerate(row)), 1.0, *targets[place]]
        for place, row in enumerate(kernel)
    ]
    system.append([1.0] * n + [0.0] * (1 + width))
    _eliminate(system)
    solved = list(zip(*(row[n + 1 :] for row in system), strict=True))
    return [(column[n], list(column[:n])) for column in solved]


def _eliminate(system: list[list[float]]) -> None:
    """Gauss and Jordan, with the largest pivot: the right-hand sides become what is sought."""
    for place in range(len(system)):
        best = max(range(place, len(system)), key=lambda row: abs(system[row][place]))
        system[place], system[best] = system[best], system[place]
        pivot = system[place][place]
        top = [value / pivot for value in system[place]]
        system[place] = top
        for other, row in enumerate(system):
            if other != place and (factor := row[place]):
                row[place:] = [a - factor * b for a, b in zip(row[place:], top[place:], strict=True)]


def _moments(rows: Rows) -> tuple[list[float], list[float]]:
    columns = list(zip(*rows, strict=True))
    means = [sum(column) / len(rows) for column in columns]
    spreads = [
        math.sqrt(sum((value - mean) ** 2 for value in column) / len(rows)) or 1.0
        for column, mean in zip(columns, means, strict=True)
    ]
    return means, spreads


def _standard(row: Sequence[float], means: Sequence[float], spreads: Sequence[float]) -> list[float]:
    return [(value - mean) / spread for value, mean, spread in zip(row, means, spreads, strict=True)]


def _kernel(standard: Rows) -> list[list[float]]:
    width = len(standard[0])
    lower = [
        [_dot(row, other) / width for other in standard[: place + 1]] for place, row in enumerate(standard)
    ]
    return [[lower[max(a, b)][min(a, b)] for b in range(len(standard))] for a in range(len(standard))]


def _cut(kernel: Rows, rows: Sequence[int], columns: Sequence[int]) -> list[list[float]]:
    return [[kernel[row][column] for column in columns] for row in rows]


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(map(mul, one, other))

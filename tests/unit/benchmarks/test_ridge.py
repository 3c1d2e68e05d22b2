"""The fit of a linear probe: what it finds, what it leaves alone, and that nothing sees what it is to say."""

import pytest

from benchmarks.supervisor import ridge

ROWS = [[x, y, 3.0] for x in (0.0, 1.0, 2.0, 3.0) for y in (5.0, -5.0, 1.0)]
TARGETS = [[2 * row[0] - 1, row[1]] for row in ROWS]


def said(rows: list[list[float]], row: list[float]) -> list[float]:
    return [one[0] + sum(a * b for a, b in zip(one[1:], row, strict=True)) for one in rows]


def test_a_line_is_found_and_a_number_that_never_changes_weighs_nothing() -> None:
    rows = ridge.fit(ROWS, TARGETS, 1e-9)
    assert rows[0] == pytest.approx([-1, 2, 0, 0], abs=1e-5)
    assert rows[1] == pytest.approx([0, 0, 1, 0], abs=1e-5)


def test_a_penalty_draws_what_is_said_to_the_mean() -> None:
    mean = sum(target[0] for target in TARGETS) / len(TARGETS)
    near, far = (abs(said(ridge.fit(ROWS, TARGETS, penalty), ROWS[-1])[0] - mean) for penalty in (50.0, 1e-9))
    assert near < far / 5


def test_a_row_is_left_out_of_what_says_it() -> None:
    odd = [[*target] for target in TARGETS]
    odd[4] = [1000.0, -1000.0]
    out = ridge.left_out(ROWS, odd, 1e-9, [[4]])[4]
    assert out == pytest.approx(TARGETS[4], abs=1e-5)


def test_rows_of_no_part_are_not_said() -> None:
    assert [bool(row) for row in ridge.left_out(ROWS, TARGETS, 1.0, [[0], [2, 3]])[:5]] == [
        True,
        False,
        True,
        True,
        False,
    ]


def test_two_sides_are_told_apart_where_numbers_are_more_than_rows() -> None:
    wide = [[float((row * 7 + place * 3) % 11) for place in range(40)] for row in range(8)]
    targets = [[float(row % 2)] for row in range(8)]
    rows = ridge.fit(wide, targets, 0.01)
    assert [said(rows, row)[0] > 0.5 for row in wide] == [row % 2 == 1 for row in range(8)]

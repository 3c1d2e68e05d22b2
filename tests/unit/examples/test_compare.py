"""When an output counts as right."""

from typing import Any

import pytest
from records.compare import differences, is_right

EXPECTED: dict[str, Any] = {
    "kind": "invoice",
    "name": "Olive & Thyme Catering",
    "vendor_id": None,
    "date": "2026-05-19",
    "reference": "OT-0588",
    "total": 716.0,
    "sum_ok": False,
}


def test_the_same_values_are_right() -> None:
    assert is_right(dict(EXPECTED), EXPECTED)


def test_case_spacing_and_trailing_zeros_do_not_count() -> None:
    assert is_right(EXPECTED | {"name": "OLIVE &  Thyme Catering", "total": 716}, EXPECTED)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", "order"),
        ("name", "Olive & Thyme"),
        ("vendor_id", "V-117"),
        ("date", None),
        ("reference", "OT-588"),
        ("total", 696.0),
        ("sum_ok", True),
        ("sum_ok", None),
    ],
)
def test_each_field_counts_and_is_named(field: str, value: Any) -> None:
    assert differences(EXPECTED | {field: value}, EXPECTED) == [field]


def test_false_is_not_zero() -> None:
    assert differences(EXPECTED | {"sum_ok": 0}, EXPECTED) == ["sum_ok"]


@pytest.mark.parametrize("output", [None, {}])
def test_no_output_is_wrong_in_every_field(output: dict[str, Any] | None) -> None:
    assert differences(output, EXPECTED) == list(EXPECTED)


def test_a_missing_field_is_wrong_even_where_nothing_is_expected() -> None:
    output = {key: value for key, value in EXPECTED.items() if key != "vendor_id"}
    assert differences(output, EXPECTED) == ["vendor_id"]

"""Whether a record says the same as the stored answer, however names and numbers are written."""

from typing import Any

from records.reading import cents, plain
from records.record import Record


def is_right(output: dict[str, Any] | None, expected: dict[str, Any]) -> bool:
    """Every field of `expected` is met; `output` is an execution's output, or `None` if it has none."""
    return not differences(output, expected)


def differences(output: dict[str, Any] | None, expected: dict[str, Any]) -> list[str]:
    """The names of the fields that are missing or say something else, in the record's order."""
    given = output or {}
    return [
        field
        for field in Record.model_fields
        if field not in given or _normal(given[field]) != _normal(expected[field])
    ]


def _normal(value: Any) -> tuple[str, Any]:
    """A value with its kind, since Python takes `False` and 0 for the same."""
    if isinstance(value, bool) or value is None:
        return "word", value
    return ("number", cents(value)) if isinstance(value, int | float) else ("text", plain(str(value)))

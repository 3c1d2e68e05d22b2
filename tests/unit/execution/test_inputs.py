"""The base of every definition's input."""

import pytest
from pydantic import Field, ValidationError

from agency.execution import ExecutionInputType


class Order(ExecutionInputType):
    number: int = Field(alias="orderNumber")
    weight: float = 1.0


def test_unknown_fields_are_refused():
    with pytest.raises(ValidationError, match="colour"):
        Order.model_validate({"orderNumber": 1, "colour": "red"})


def test_numbers_that_json_cannot_hold_are_refused():
    with pytest.raises(ValidationError, match="finite"):
        Order(orderNumber=1, weight=float("nan"))


def test_a_stored_input_is_valid_input_again_whatever_its_aliases():
    stored = Order.model_validate({"orderNumber": 7}).model_dump(mode="json")
    assert stored == {"number": 7, "weight": 1.0}
    assert Order.model_validate(stored) == Order(orderNumber=7)

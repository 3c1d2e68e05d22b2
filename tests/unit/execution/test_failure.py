"""Failure codes and results."""

from agency.execution import ExecutionFailureCode, ExecutionResult
from agency.execution.failure import failure_codes


class ShopCode(ExecutionFailureCode):
    OUT_OF_STOCK = "out_of_stock"


class StrictShopCode(ShopCode):
    UNKNOWN = "no_idea"


def test_the_codes_are_plain_strings():
    assert ExecutionFailureCode.MAX_RETRIES_EXCEEDED == "max_retries_exceeded"
    assert failure_codes(ExecutionFailureCode) == [
        "runtime_error",
        "max_retries_exceeded",
        "validation_failed",
        "unknown",
        "limit_reached",
        "budget_exceeded",
        "deadline_exceeded",
        "crash_loop",
        "request_expired",
        "no_progress",
        "supervisor_invalid",
        "context_overflow",
        "model_refused",
        "mission_failed",
    ]


def test_a_subclass_lists_its_own_codes_after_the_inherited_ones():
    assert failure_codes(ShopCode) == [*failure_codes(ExecutionFailureCode), "out_of_stock"]


def test_a_code_that_a_subclass_renames_is_listed_under_its_new_name():
    codes = failure_codes(StrictShopCode)
    assert "no_idea" in codes
    assert "unknown" not in codes


def test_a_result_without_details_is_an_outcome():
    assert ExecutionResult(success=True) == ExecutionResult(True, {}, None, None)

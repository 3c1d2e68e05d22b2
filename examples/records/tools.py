"""The clerk's tools: the vendor directory, and arithmetic that no small model should do in its head."""

from typing import Annotated

from pydantic import BaseModel, Field

from agency.agent import BaseFunctionTool, Effect, ExecutionContext
from agency.execution import ToolScratchpad
from records.reading import amount
from records.vendors import vendor_id

SUM_OK = "sum_ok"
Printed = Annotated[str, Field(min_length=1, max_length=30)]


class VendorName(BaseModel):
    name: str = Field(min_length=1, max_length=120, description="as printed")


class Sum(BaseModel):
    amounts: list[Printed] = Field(min_length=1, max_length=30, description="every line amount and the tax")
    total: Printed = Field(description="the amount to pay")


class LookUpVendorTool(BaseFunctionTool):
    """The vendor id of a company."""

    NAME = "look_up_vendor"
    DESCRIPTION = "Finds the vendor id of the company that sent an invoice."
    ARGS_SCHEMA = VendorName
    EFFECT = Effect.READ

    def run(self, name: str) -> str:
        found = vendor_id(name)
        return f"vendor_id is {found}" if found else "not in the directory: vendor_id is null"


class CheckTotalTool(BaseFunctionTool):
    """Whether the lines of an invoice add up to its total; what it found is recorded for the validators.

    The scratchpad holds it for this attempt, the context's state for those that may follow.
    """

    NAME = "check_total"
    DESCRIPTION = "Adds up the amounts of an invoice and compares the sum with its total."
    ARGS_SCHEMA = Sum
    EFFECT = Effect.READ

    def run(
        self, amounts: list[str], total: str, scratchpad: ToolScratchpad, context: ExecutionContext
    ) -> str:
        values, wanted = [amount(text) for text in amounts], amount(total)
        # Lists are often copied down to the last line; the total itself is no part of the sum.
        if len(values) > 1 and values[-1] == wanted:
            values.pop()
        found = sum(values)
        scratchpad.record(SUM_OK, found == wanted)
        context.state[SUM_OK] = found == wanted
        if found == wanted:
            return f"sum_ok is true: the amounts add up to the total {wanted}"
        return f"sum_ok is false. total is {wanted} as printed, though the amounts add up to {found}"

"""The clerk's tools: the vendor directory and the arithmetic."""

import pytest
from records.agents import RecordsClerk
from records.tools import SUM_OK, CheckTotalTool, LookUpVendorTool

from agency.agent import Agent, Effect, ToolCall
from agency.agent.context import ExecutionContext
from agency.agent.testing import ScriptedLlm
from agency.execution import Conversation, ToolScratchpad


def check(amounts: list[str], total: str) -> tuple[str, object]:
    pad = ToolScratchpad()
    return CheckTotalTool().run(amounts, total, pad, ExecutionContext()), pad.read(SUM_OK)


def test_a_vendor_is_found_in_any_case_and_spacing() -> None:
    assert LookUpVendorTool().run("OLIVE &  thyme catering") == "vendor_id is V-117"


def test_an_unknown_vendor_has_no_id() -> None:
    assert LookUpVendorTool().run("Greenhollow Garden Care") == "not in the directory: vendor_id is null"


def test_german_amounts_add_up_to_the_cent() -> None:
    said, recorded = check(["1.840,00 €", "262,50", "480,00", "490,68"], "3.073,18 €")
    assert said == "sum_ok is true: the amounts add up to the total 3073.18"
    assert recorded is True


def test_a_wrong_total_is_said_and_recorded() -> None:
    said, recorded = check(["432.00", "78.00", "66.00", "120.00"], "716.00")
    assert said == "sum_ok is false. total is 716.00 as printed, though the amounts add up to 696.00"
    assert recorded is False


def test_the_total_at_the_end_of_the_amounts_is_not_added() -> None:
    assert check(["10.00", "2.00", "12.00"], "12.00")[1] is True


def test_a_single_line_may_be_the_total() -> None:
    assert check(["12.00"], "12.00")[1] is True


def test_an_unreadable_amount_is_an_error_and_records_nothing() -> None:
    pad = ToolScratchpad()
    with pytest.raises(ValueError, match="'ten' is not one amount"):
        CheckTotalTool().run(["ten"], "12.00", pad, ExecutionContext())
    assert pad.entries(SUM_OK) == []


def test_the_clerk_calls_both_tools_and_the_scratchpad_is_filled_in() -> None:
    script = ScriptedLlm(
        [
            ToolCall(tool_call_id="1", name="look_up_vendor", arguments={"name": "Nordlicht IT-Service"}),
            ToolCall(
                tool_call_id="2",
                name="check_total",
                arguments={"amounts": ["510,00", "139,90"], "total": "649,90"},
            ),
        ],
        "done",
    )
    agent: Agent = RecordsClerk.build(script)
    conversation = Conversation(agent, context=ExecutionContext())
    assert conversation.ask("go") == "done"
    results = [result for event in conversation.context.events for result in event.tool_results]
    assert [(result.name, result.status) for result in results] == [
        ("look_up_vendor", "success"),
        ("check_total", "success"),
    ]
    assert conversation.scratchpad.read(SUM_OK) is True


def test_repeating_a_tool_changes_nothing_so_a_crash_may_repeat_it() -> None:
    assert {config.tool_class.EFFECT for config in RecordsClerk.TOOLS} == {Effect.READ}

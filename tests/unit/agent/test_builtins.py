"""The built-in tools: exact, capped, and clear about what they cannot do."""

import math
import re
from typing import Any

import pytest

from agency.agent import Agent, ExecutionContext
from agency.agent.builtins import calculator, current_time
from agency.agent.calculator import calculate
from agency.agent.testing import ScriptedLlm, call
from agency.errors import InvalidInput


def one(name: str, **arguments: Any) -> tuple[str, Any]:
    agent = Agent("clerk", ScriptedLlm(), tools=[calculator, current_time])
    (result,) = agent.act(ExecutionContext(), [call(name, **arguments)])
    return result.status, result.content


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(2 + 3) * 1.5", 7.5),
        ("2^10", 1024),
        ("-7 // 2", -4),
        ("7 % 4", 3),
        ("10 ÷ 4 − 1", 1.5),
        ("sqrt(16) + max(1, 2, 3)", 7.0),
        ("round(2.675, 1)", 2.7),
        ("2 ** -1", 0.5),
        ("pi", math.pi),
        (" 3 ", 3),
    ],
)
def test_arithmetic_is_worked_out(expression: str, value: float) -> None:
    assert one("calculator", expression=expression) == ("success", value)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("1 +", "no arithmetic expression"),
        ("", "no arithmetic expression"),
        ("(" * 400 + "1", "no arithmetic expression"),
        ("1 / 0", "division by zero"),
        ("9 ** 9 ** 9 ** 9", "too large"),
        ("2 ** 1e300", "too large"),
        ("1e200 * 1e200", "not finite"),
        ("(-1) ** 0.5", "no real number"),
        ("sqrt(-1)", "has no value"),
        ("sqrt()", "has no value"),
        ("__import__('os')", "is not allowed"),
        ("(1).real", "is not allowed"),
        ("'a' * 9", "is not allowed"),
        ("True + 1", "is not allowed"),
        ("[1] * 9", "is not allowed"),
        ("round(1, ndigits=2)", "is not allowed"),
        ("1" * 501, "501 characters"),
        ("1" * 400, "too large"),
    ],
)
def test_what_is_no_arithmetic_is_refused_at_once(expression: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        calculate(expression)


def test_the_time_is_told_with_weekday_and_zone() -> None:
    told = r"(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
    status, content = one("current_time")
    assert status == "success"
    assert re.fullmatch(told + r"\+0000", content)
    assert re.fullmatch(told + r"\+0530", one("current_time", timezone="Asia/Kolkata")[1])


@pytest.mark.parametrize("timezone", ["Nowhere/City", "../../etc/passwd", "", "a\x00b"])
def test_a_zone_that_is_not_known_is_named(timezone: str) -> None:
    status, content = one("current_time", timezone=timezone)
    assert (status, "give a name such as Europe/Berlin" in content) == ("error", True)

"""Arithmetic in text, worked out without running code: numbers, operators, a few functions, capped."""

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

from agency.errors import InvalidInput

LONGEST = 500
LARGEST = 10**300
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda left, right: left / right,
    ast.FloorDiv: lambda left, right: left // right,
    ast.Mod: operator.mod,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "ceil": math.ceil,
    "exp": math.exp,
    "floor": math.floor,
    "log": math.log,
    "max": max,
    "min": min,
    "round": round,
    "sqrt": math.sqrt,
}
_NAMES = {"pi": math.pi, "e": math.e}


def calculate(expression: str) -> int | float:
    """The value of an expression such as `(2 + 3) * 1.19`; `InvalidInput` says what cannot be worked out."""
    if len(expression) > LONGEST:
        raise InvalidInput(f"the expression has {len(expression)} characters; {LONGEST} are the most")
    text = expression.strip().replace("^", "**").replace("×", "*").replace("÷", "/").replace("−", "-")
    try:
        return _checked(_value(ast.parse(text, mode="eval").body))
    except (SyntaxError, RecursionError, MemoryError):
        raise InvalidInput(f"{expression!r} is no arithmetic expression") from None
    except (ArithmeticError, TypeError, ValueError) as exc:
        raise InvalidInput(f"{expression!r} has no value: {exc}") from None


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return _checked(number)
        case ast.Name(id=name) if name in _NAMES:
            return _NAMES[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left), _value(right))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _BINARY:
            return _checked(_BINARY[type(sign)](_value(left), _value(right)))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            return _checked(_FUNCTIONS[name](*[_value(one) for one in arguments]))
        case _:
            raise InvalidInput(
                f"{ast.unparse(node)!r} is not allowed; use numbers, + - * / // % ** and "
                f"{', '.join([*_FUNCTIONS, *_NAMES])}"
            )


def _power(base: Any, exponent: Any) -> Any:
    """A power whose size is known before it is worked out."""
    if abs(base) > 1 and abs(exponent) * math.log10(abs(base)) > math.log10(LARGEST):
        raise OverflowError("the number is too large")
    return _checked(base**exponent)


def _checked(value: Any) -> Any:
    if isinstance(value, complex):
        raise ValueError("it is no real number")
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("it is not finite")
    if abs(value) > LARGEST:
        raise OverflowError("the number is too large")
    return value

"""What a function's signature and docstring become for the model, and what is refused at definition."""

import enum
from collections.abc import Callable
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from agency.agent import ExecutionContext, ToolCallInfo, ToolDefinitionError, tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    street: str
    title: str = "home"


class Order(BaseModel):
    to: Address
    items: list[str] = Field(min_length=1)


def google(city: str, days: int = 3) -> str:
    """Forecast the weather.

    For one city.

    Args:
        city: Where.
        days: How far ahead.
    """
    return f"{city}{days}"


def numpy(city: str, days: int = 3) -> str:
    """Forecast the weather.

    For one city.

    Parameters
    ----------
    city : str
        Where.
    days : int
        How far ahead.
    """
    return f"{city}{days}"


def sphinx(city: str, days: int = 3) -> str:
    """Forecast the weather.

    For one city.

    :param city: Where.
    :param days: How far ahead.
    """
    return f"{city}{days}"


@pytest.mark.parametrize("function", [google, numpy, sphinx])
def test_the_spec_comes_from_signature_and_docstring(function: Callable[..., str]) -> None:
    spec = tool(function).spec
    assert spec.name == function.__name__
    assert spec.description == "Forecast the weather.\n\nFor one city."
    assert spec.parameters == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "city": {"type": "string", "description": "Where."},
            "days": {"type": "integer", "description": "How far ahead.", "default": 3},
        },
        "required": ["city"],
    }


def test_a_function_without_docstring_and_parameters_is_a_tool() -> None:
    def now() -> str:
        return "noon"

    spec = tool(now).spec
    assert spec.description == ""
    assert spec.parameters == {"type": "object", "properties": {}, "additionalProperties": False}


def test_a_decorated_function_still_runs_unchanged() -> None:
    made = tool(google)
    assert made("Bonn", days=1) == "Bonn1"
    assert made.__name__ == "google"
    assert made.__doc__ == google.__doc__


def test_every_pydantic_type_arrives_as_an_instance() -> None:
    def place(
        order: Order,
        day: date,
        colour: Colour,
        size: Literal["s", "m"],
        amount: int | str,
        tags: set[str] | None = None,
    ) -> None: ...

    values = tool(place).parameters.validate(
        {
            "order": {"to": {"street": "Elm"}, "items": ["x"]},
            "day": "2026-03-12",
            "colour": "red",
            "size": "m",
            "amount": "7",
            "tags": ["a", "a"],
        }
    )
    assert values == {
        "order": Order(to=Address(street="Elm"), items=["x"]),
        "day": date(2026, 3, 12),
        "colour": Colour.RED,
        "size": "m",
        "amount": "7",
        "tags": {"a"},
    }


def test_nested_models_keep_their_defs_and_a_property_called_title() -> None:
    def place(order: Order) -> None: ...

    schema = tool(place).spec.parameters
    assert schema["properties"]["order"] == {"$ref": "#/$defs/Order"}
    assert set(schema["$defs"]["Address"]["properties"]) == {"street", "title"}


def test_parameters_may_have_names_that_pydantic_uses_itself() -> None:
    def odd(schema: str, json: str, copy: int, model_config: str, _private: int = 1) -> str:
        return schema

    made = tool(odd)
    assert list(made.spec.parameters["properties"]) == ["schema", "json", "copy", "model_config", "_private"]
    values = {"schema": "a", "json": "b", "copy": 1, "model_config": "c"}
    assert made.parameters.validate(values) == values


def test_field_constraints_and_descriptions_are_kept() -> None:
    def buy(
        count: Annotated[int, Field(gt=0, description="How many.")], note: str = Field("none", max_length=5)
    ) -> None: ...

    made = tool(buy)
    assert made.spec.parameters["properties"]["count"] == {
        "type": "integer",
        "exclusiveMinimum": 0,
        "description": "How many.",
    }
    assert made.spec.parameters["properties"]["note"]["maxLength"] == 5
    assert made.parameters.validate({"count": 1}) == {"count": 1, "note": "none"}


def test_injected_parameters_are_hidden_from_the_model() -> None:
    def look(query: str, context: ExecutionContext, info: ToolCallInfo | None = None) -> None: ...

    made = tool(look)
    assert list(made.spec.parameters["properties"]) == ["query"]
    assert set(made.injected) == {"context", "info"}
    assert made.injected["info"].optional


def test_positional_only_parameters_are_passed_by_position() -> None:
    def power(base: int, exponent: int = 2, /) -> int:
        return base**exponent

    made = tool(power)
    assert made.invoke(made.parameters.validate({"base": 3})) == 9


def starred(*names: str) -> None: ...
def double_starred(**names: str) -> None: ...
def takes_bytes(data: bytes) -> None: ...
def takes_nested_bytes(data: list[bytes]) -> None: ...
def takes_bytearray(data: bytearray) -> None: ...
def takes_a_function(callback: Callable[[], None]) -> None: ...
def takes_an_object(handle: "Opaque") -> None: ...


class Opaque:
    """Any class that Pydantic cannot describe."""


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (starred, r"\*names has no schema"),
        (double_starred, r"\*\*names has no schema"),
        (takes_bytes, "`data` is bytes"),
        (takes_nested_bytes, "`data` is bytes"),
        (takes_bytearray, "`data` is bytes"),
        (takes_a_function, "callback"),
        (takes_an_object, "handle"),
    ],
)
def test_what_a_model_cannot_send_is_refused_at_definition_by_name(
    function: Callable[..., Any], message: str
) -> None:
    with pytest.raises(ToolDefinitionError, match=message):
        tool(function)


def test_an_annotation_that_cannot_be_resolved_is_named() -> None:
    def lost(thing: str) -> None: ...

    lost.__annotations__["thing"] = "Nowhere"
    with pytest.raises(ToolDefinitionError, match="'Nowhere' is not known"):
        tool(lost)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "no spaces"}, "1 to 64 letters"),
        ({"name": "x" * 65}, "1 to 64 letters"),
        ({"timeout": 0}, "timeout is 0"),
        ({"retries": -1}, "retries is -1"),
        ({"retries": 1}, "retries would repeat an unsafe effect"),
        ({"effect": "sometimes"}, "use one of read, idempotent, unsafe"),
    ],
)
def test_wrong_options_are_refused_with_the_fix(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ToolDefinitionError, match=message):
        tool(**options)(google)


def test_options_override_what_the_function_says() -> None:
    made = tool(name="weather", description="Ask for it.", effect="read", timeout=2, parallel=False)(google)
    assert (made.name, made.spec.description) == ("weather", "Ask for it.")
    assert (made.effect, made.timeout, made.conduct.parallel) == ("read", 2, False)


def test_an_undecorated_effect_is_unsafe_and_a_sync_function_has_no_timeout() -> None:
    assert tool(google).effect == "unsafe"
    assert tool(google).timeout is None


def test_an_async_tool_has_a_default_timeout() -> None:
    async def later() -> None: ...

    assert tool(later).timeout == 60.0

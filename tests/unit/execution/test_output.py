"""Strict JSON, and what an execution stores of an answer."""

import pytest

from agency.execution.output import NotJson, parse_json, to_output


def test_a_json_object_is_the_output_as_it_is():
    assert to_output(' {"total": 3, "lines": [1, 2]}\n') == {"total": 3, "lines": [1, 2]}


@pytest.mark.parametrize(
    ("text", "value"), [("[1]", [1]), ("0", 0), ("null", None), ('"hi"', "hi"), ("false", False)]
)
def test_json_that_is_no_object_is_the_value(text, value):
    assert to_output(text) == {"value": value}


@pytest.mark.parametrize("text", ["It rained.", "", '```json\n{"a": 1}\n```', "NaN", "{'a': 1}"])
def test_text_is_the_response(text):
    assert to_output(text) == {"response": text}


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -Infinity}', "1e999", '{"a": 1,}', "{} {}", ""])
def test_what_strict_json_does_not_allow_is_refused(text):
    with pytest.raises(NotJson):
        parse_json(text)


def test_json_that_is_nested_without_end_or_a_number_without_end_is_refused_not_a_crash():
    for text in ("[" * 100_000, "1" * 10_000):
        with pytest.raises(NotJson):
            parse_json(text)


def test_the_fault_says_line_and_column():
    with pytest.raises(NotJson, match="line 2, column 8"):
        parse_json('{"a": 1,\n "b": 2x}')


def test_texts_that_no_database_could_store_come_out_clean():
    assert to_output(r'{"a\u0000": "x\u0000y", "b": ["\ud800"]}') == {"a": "xy", "b": ["\ufffd"]}
    assert to_output("a\x00b") == {"response": "ab"}

"""Text and values from outside, made safe to store."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agency.agent.text import (
    DEEPEST,
    clean,
    clean_json,
    cut,
    describe_error,
    fingerprint,
    is_clean,
    is_deep,
    to_payload,
)
from agency.redaction import redact


@given(st.text(alphabet=st.characters(categories=None)))
def test_clean_text_can_be_stored_anywhere(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode("utf-8")
    assert "\x00" not in cleaned
    assert clean(cleaned) == cleaned


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00")))
def test_good_text_is_left_as_it_is(text: str) -> None:
    assert clean(text) == text


def test_a_surrogate_pair_becomes_the_sign_it_stands_for() -> None:
    assert clean("\ud83d\ude00") == "😀"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(alphabet=st.characters(categories=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(json_values)
def test_every_value_becomes_strict_json(value: object) -> None:
    cleaned = clean_json(value)
    json.dumps(cleaned, allow_nan=False, ensure_ascii=False).encode("utf-8")
    if is_clean(value):
        assert cleaned == value


@given(json_values, st.integers(min_value=1, max_value=200))
def test_a_payload_is_json_of_limited_length(value: object, limit: int) -> None:
    payload = to_payload(value, limit)
    text = json.dumps(payload, allow_nan=False, ensure_ascii=False)
    assert len(text) <= 2 * limit + 100 or isinstance(payload, int)


def test_a_cut_says_how_much_there_was() -> None:
    assert cut("abcdef", 3) == "abc\n[cut here: 6 characters in all, the first 3 are shown]"
    assert cut("abc", 3) == "abc"


@pytest.mark.parametrize(
    ("error", "text"),
    [(ValueError("no\x00 way"), "ValueError: no way"), (KeyError(), "KeyError"), (OSError(2, "gone"), None)],
)
def test_an_error_is_described_by_type_and_message(error: Exception, text: str | None) -> None:
    described = describe_error(error)
    assert described.startswith(type(error).__name__)
    assert text is None or described == text


def test_depth_is_measured_in_lists_and_objects() -> None:
    value: Any = "x"
    for _ in range(DEEPEST // 2):
        value = [{"a": value}]
    assert not is_deep(value)
    assert is_clean(value)
    assert is_deep([value])
    assert not is_clean([value])


@pytest.mark.parametrize("value", [1e16, -0.0, 2.5, {"a": [3.0, {"b": 1e300}]}])
def test_a_fingerprint_is_the_same_for_what_a_database_gives_back(value: Any):
    def stored(part: Any) -> Any:
        if isinstance(part, float) and part.is_integer():
            return int(part)
        if isinstance(part, dict):
            return {key: stored(item) for key, item in part.items()}
        return [stored(item) for item in part] if isinstance(part, list) else part

    assert fingerprint(value) == fingerprint(stored(value))
    assert fingerprint(value) != fingerprint("other")


@given(st.text() | st.builds("password={} Bearer {}{} //a:{}@b".format, *[st.text(max_size=9)] * 4))
def test_a_fingerprint_is_the_same_for_what_was_masked(text: str):
    assert fingerprint({"q": text}) == fingerprint(redact({"q": text}))

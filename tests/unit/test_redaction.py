"""Secrets are found by the name of their key and by their shape; everything else stays as it is."""

import time

import pytest

from agency.redaction import MASK, redact, redact_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("the key sk-proj-AbCdEf0123456789xyz was refused", f"the key {MASK} was refused"),
        ("Authorization: Bearer abc.def-ghi_jkl", f"Authorization: Bearer {MASK}"),
        ("postgresql://app:hunter2secret@db/agency", f"postgresql://app:{MASK}@db/agency"),
        ("GET /v1?key=AIzaWhatever1234&n=2", f"GET /v1?key={MASK}&n=2"),
        ('{"api_key": "0123456789"}', f'{{"api_key": "{MASK}"}}'),
        ("PASSWORD=correct-horse", f"PASSWORD={MASK}"),
        ("passphrase: correct-horse", f"passphrase: {MASK}"),
        ("Authorization: Basic YWRhOmxvdmVsYWNl", f"Authorization: Basic {MASK}"),
        (
            '{"a": [{"Cookie": "x"}], "passwords": ["y"]}',
            f'{{"a": [{{"Cookie": "{MASK}"}}], "passwords": ["{MASK}"]}}',
        ),
        ("agency_0123456789abcdefghijklmnop", MASK),
        ("AKIAIOSFODNN7EXAMPLE", MASK),
        ("ghp_0123456789abcdefghij0123", MASK),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", MASK),
        ("-----BEGIN PRIVATE KEY-----\nMIIE\nxyz\n-----END PRIVATE KEY-----", MASK),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE and cut", MASK),
    ],
)
def test_a_secret_is_masked_by_its_shape_and_what_introduces_it_stays(text: str, shown: str) -> None:
    assert redact_text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Invoice 2026-0117 of 12 March, total 1,234.56 EUR",
        "the secret of a good soup",
        "a risk-free, task-based week",
        "https://example.org/a/b?page=2&keyword=tax",
        "tokens: 512",
        '{"id":1,  "keys": "all of them"}',
        '{"not json: "key"',
        "",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert redact_text(text) is text or redact_text(text) == text


def test_a_text_under_a_key_that_names_a_secret_is_masked_at_any_depth() -> None:
    value = {"headers": [{"Authorization": "Basic abc", "Accept": "text/html"}], "db": {"PASSWORD": "x"}}
    assert redact(value) == {
        "headers": [{"Authorization": MASK, "Accept": "text/html"}],
        "db": {"PASSWORD": MASK},
    }


def test_every_text_under_such_a_key_is_masked_in_lists_and_objects_too() -> None:
    value = {"api_keys": ["a1", "b2", 3], "credentials": {"user": "ada", "pin": [{"x": "4711"}]}}
    assert redact(value) == {"api_keys": [MASK, MASK, 3], "credentials": {"user": MASK, "pin": [{"x": MASK}]}}


def test_numbers_and_empty_texts_under_such_a_key_stay() -> None:
    value = {"token": 512, "secret": None, "api_key": "", "input_tokens": 7, "tokens": "many"}
    assert redact(value) == value


def test_what_was_given_is_not_changed() -> None:
    value = {"password": "x", "list": ["sk-0123456789abcdefghij"]}
    redact(value)
    assert value == {"password": "x", "list": ["sk-0123456789abcdefghij"]}


@pytest.mark.parametrize("around", ["{}", "said\n{}", "gesagt: „{}“", "\ud800 {} \udfff", "\x00{}"])
@pytest.mark.parametrize(
    "secret", ["sk-proj-AbCdEf0123456789xyz", "AKIAIOSFODNN7EXAMPLE", "xoxb-0123456789-abc"]
)
def test_a_secret_is_found_in_any_case_and_beside_any_signs(secret: str, around: str) -> None:
    for written in (secret, secret.lower(), secret.upper()):
        assert redact_text(around.format(written)) == around.format(MASK)


@pytest.mark.parametrize("piece", ["a-", "eyJ-", "://a:", "password ", "sk-a", "-----BEGIN "])
def test_a_long_text_made_to_be_slow_is_not(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    began = time.process_time()
    redact_text(text)
    assert time.process_time() - began < 5.0

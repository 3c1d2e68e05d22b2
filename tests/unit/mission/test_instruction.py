import pytest

from agency.mission.instruction import is_placeholder


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "...",
        "next_input",
        '"next_input"',
        "`follow_up`",
        "'Continue.'",
        "«continue»",
        "{next_input}",
        "<next_input>",
        "N/A",
        "n/a.",
        "None",
        "null",
        "next_input: continue",
        "Follow-up: n/a",
        "status = continue",
        "**complete**",
        "ＣＯＮＴＩＮＵＥ",
        "not applicable",
        "TBD",
    ],
)
def test_a_form_s_own_words_are_no_instruction(text: str) -> None:
    assert is_placeholder(text)


@pytest.mark.parametrize(
    "text",
    [
        "Continue with invoice 4.",
        "Wait for no one: read notes.txt next",
        "Check the status of order 17",
        "Write a summary of the three reports",
        "Weiter mit Rechnung 3",
        "続けて",
        "7",
    ],
)
def test_a_concrete_instruction_may_hold_such_words(text: str) -> None:
    assert not is_placeholder(text)

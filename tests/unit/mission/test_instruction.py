import pytest

from agency.mission.instruction import is_no_question, is_placeholder


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


@pytest.mark.parametrize(
    "text",
    [
        "",
        "?",
        "n/a",
        "None.",
        "nothing",
        "Nothing is missing.",
        "'blocked'",
        "question",
        "Question?",
        "Ask a person.",
    ],
)
def test_a_word_that_asks_nothing_is_no_question(text: str) -> None:
    assert is_no_question(text)


@pytest.mark.parametrize(
    "text",
    ["Which?", "May I?", "Is nothing missing?", "Who is the person to ask?", "Quelle commande ?", "誰に?"],
)
def test_a_question_may_hold_such_words_and_be_short(text: str) -> None:
    assert not is_no_question(text)

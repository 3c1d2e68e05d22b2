from hypothesis import given
from hypothesis import strategies as st

from agency.enums import MessageRole
from agency.mission.transcript import Caps, Line, from_result, transcribe

USER, AGENT, TOOL = MessageRole.USER, MessageRole.ASSISTANT, MessageRole.TOOL


def conversation(rounds: int, length: int = 200) -> list[Line]:
    lines = [Line(USER, "THE TASK", 1), Line(AGENT, "a" * length, 1)]
    for n in range(2, rounds + 1):
        lines += [
            Line(USER, f"instruction {n}", n, by_supervisor=True),
            Line(AGENT, f"answer {n} " + "b" * length, n),
        ]
    return lines


def test_a_short_conversation_is_shown_whole_with_rounds_and_speakers() -> None:
    lines = [
        Line(USER, "Do it", 1),
        Line(TOOL, "← read: ok", 1),
        Line(AGENT, "Done", 1),
        Line(USER, "More", 2, True),
    ]
    assert transcribe(lines, Caps()).splitlines() == [
        "[round 1] user: Do it",
        "[round 1] tool: ← read: ok",
        "[round 1] agent: Done",
        "[round 2] supervisor: More",
    ]


def test_the_oldest_are_left_out_with_a_note_and_task_and_newest_turn_stay() -> None:
    said = transcribe(conversation(50), Caps(characters=2_000))
    assert said.startswith("[round 1] user: THE TASK\n[… ")
    assert "instruction 50" in said and "answer 50" in said
    assert "instruction 5\n" not in said
    assert len(said) <= 2_200


def test_messages_are_capped_too() -> None:
    assert len(transcribe(conversation(50, 5), Caps(messages=10)).splitlines()) <= 11


def test_a_tool_s_result_is_short() -> None:
    said = transcribe([Line(USER, "x"), Line(TOOL, "← read: " + "z" * 5_000)], Caps())
    assert len(said) < 600


def test_a_newest_turn_that_is_too_long_keeps_its_opening_and_its_end() -> None:
    lines = [
        Line(USER, "THE TASK"),
        *(Line(AGENT, f"step {n} " + "c" * 300) for n in range(50)),
        Line(AGENT, "the end"),
    ]
    said = transcribe(lines, Caps(characters=2_000))
    assert said.startswith("user: THE TASK") and said.endswith("agent: the end")
    assert "messages of this round are left out" in said


def test_a_conversation_without_words_says_so() -> None:
    assert transcribe([], Caps()) == "(Nothing has been said yet.)"


def test_lines_of_a_stored_result() -> None:
    assert from_result([{"role": "user", "content": "x"}]) == [Line(USER, "x")]


@given(
    st.lists(st.tuples(st.sampled_from([USER, AGENT, TOOL]), st.text(max_size=300)), max_size=40),
    st.integers(300, 3_000),
)
def test_no_conversation_breaks_the_cap_by_more_than_its_notes(
    said: list[tuple[MessageRole, str]], characters: int
) -> None:
    text = transcribe([Line(role, content) for role, content in said], Caps(characters=characters))
    assert len(text) <= characters * 1.8 + 300

from hypothesis import given
from hypothesis import strategies as st

from agency.mission.prompt import RULES, Counters, Matter, fill, supervisor_request

MATTER = Matter(
    "Read all nine files", Counters(2, 5), "Go file by file.", "One file read.", "agent: read a.txt"
)


def test_the_placeholders_are_filled_in() -> None:
    template = (
        "{mission_name} {iteration}/{max_iterations}, {remaining_iterations} left, so far: {last_summary}"
    )
    assert fill(template, Counters(3, 10), "Files", "two read") == "Files 3/10, 7 left, so far: two read"


def test_unknown_braces_and_format_tricks_stay_text() -> None:
    template = "{x} {iteration.__class__} {iteration!r} {iteration:>9} {0} {{iteration}} { iteration } {x[0]}"
    filled = fill(template, Counters(1, 2), "m", "s")
    assert filled == template.replace("{{iteration}}", "{1}")


def test_what_is_filled_in_is_not_read_again() -> None:
    assert fill("{last_summary}", Counters(1, 2), "{iteration}", "{mission_name}") == "{mission_name}"


@given(st.text(alphabet="{}iteration_.![]:0 max", max_size=60))
def test_no_template_raises_or_reaches_further_than_its_list(template: str) -> None:
    filled = fill(template, Counters(1, 2), "m", "s")
    assert filled == template.replace("{iteration}", "1").replace("{max_iterations}", "2")


def test_the_request_holds_everything_in_the_fixed_order() -> None:
    request = supervisor_request(MATTER)
    said = request.contents[0].content
    wanted = [
        "Read all nine files",
        "2 of at most 5, 3 left",
        "Go file by file.",
        "One file read.",
        "agent: read a.txt",
    ]
    places = [said.index(part) for part in wanted]
    assert places == sorted(places)
    assert request.instructions == [RULES]
    assert request.tools == []


def test_the_mark_around_the_transcript_cannot_be_foreseen() -> None:
    def mark() -> str:
        said = supervisor_request(MATTER).contents[0].content
        return said.split("<transcript-")[1].split(">")[0]

    assert mark() != mark()

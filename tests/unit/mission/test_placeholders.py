from hypothesis import given
from hypothesis import strategies as st

from agency.mission.placeholders import Counters, fill


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

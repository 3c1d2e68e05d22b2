from dataclasses import replace

from agency.mission.placeholders import Counters
from agency.mission.prompt import RULES, Matter, supervisor_request

MATTER = Matter(
    "Read all nine files", Counters(2, 5), "Go file by file.", "One file read.", "agent: read a.txt"
)


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


def test_orders_and_summary_are_cut_visibly_where_there_is_little_room() -> None:
    long = replace(MATTER, objective="a" * 900 + " to the end", loop_prompt="b" * 900, last_summary="c" * 900)
    short = long.within(300)
    assert all(len(text) <= 300 for text in (short.objective, short.loop_prompt, short.last_summary))
    assert short.objective.startswith("aaa") and short.objective.endswith(" to the end")
    assert "characters left out …]" in short.loop_prompt and "characters left out …]" in short.last_summary
    assert (short.transcript, short.counters) == (long.transcript, long.counters)
    assert MATTER.within(300) == MATTER


def test_the_time_and_the_watches_are_told_where_they_are_known() -> None:
    known = replace(MATTER, now="Monday, 2026-11-30 12:00 UTC", watches="- build: The build has ended.")
    said = supervisor_request(known).contents[0].content
    assert "The time now:\nMonday, 2026-11-30 12:00 UTC\n\n" in said
    assert "by name:\n- build: The build has ended.\n\nTranscript" in said
    unknown = supervisor_request(MATTER).contents[0].content
    assert "The time now" not in unknown and "Watches" not in unknown


def test_the_mark_around_the_transcript_cannot_be_foreseen() -> None:
    def mark() -> str:
        said = supervisor_request(MATTER).contents[0].content
        return said.split("<transcript-")[1].split(">")[0]

    assert mark() != mark()

"""Notices are small, name what they are about, and leave out the history."""

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agency.mission.notices import (
    LARGEST,
    LONGEST_TEXT,
    Lifecycle,
    Whose,
    execution_group,
    missions_group,
    notice,
    notices,
)

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
LOOP = Whose("e-1", "m-1")
TEXT = st.builds(lambda part, times: part * times, st.text(max_size=4), st.integers(0, 1_000))
DATA = st.dictionaries(TEXT, TEXT | st.integers() | st.booleans() | st.none() | st.lists(TEXT), max_size=12)


def event(seq: int, kind: str = "mission_iteration_completed", **data: Any) -> Lifecycle:
    return Lifecycle(seq, kind, 2, NOW, data)


def test_a_notice_is_named_after_the_event_and_says_whose_it_is() -> None:
    assert notice(LOOP, event(7, summary="Read a.txt", attempt=2)) == {
        "type": "mission_iteration_completed",
        "execution": "e-1",
        "mission": "m-1",
        "seq": 7,
        "iteration": 2,
        "at": "2026-11-30T12:00:00+00:00",
        "summary": "Read a.txt",
        "attempt": 2,
    }


def test_a_long_text_is_cut_with_a_note() -> None:
    said = notice(LOOP, event(7, summary="x" * 5_000))["summary"]
    assert said.startswith("x" * LONGEST_TEXT)
    assert said.endswith(f"[cut here: 5,000 characters in all, the first {LONGEST_TEXT} are shown]")


def test_what_is_nested_or_a_payload_is_left_to_the_event() -> None:
    told = notice(LOOP, event(7, "mission_signal_received", name="paid", payload="all of it", usage={"a": 1}))
    assert told["name"] == "paid"
    assert not {"payload", "usage"} & set(told)


def test_data_cannot_pass_for_what_a_notice_says_itself() -> None:
    data = {"type": "execution_finished", "execution": "e-2", "seq": 99}
    told = notice(LOOP, Lifecycle(7, "mission_loop_started", 2, NOW, data))
    assert (told["type"], told["execution"], told["seq"]) == ("mission_loop_started", "e-1", 7)


@given(DATA)
def test_a_notice_is_small_whatever_the_event_holds(data: dict[str, Any]) -> None:
    told = notice(LOOP, Lifecycle(7, "mission_loop_waiting", 2, NOW, data))
    assert len(json.dumps(told)) <= LARGEST
    assert (told["execution"], told["seq"]) == ("e-1", 7)


def test_many_short_values_come_before_a_long_one() -> None:
    short = {f"n{n}": n for n in range(20)}
    told = notice(LOOP, event(7, **{f"text{n}": "é" * 300 for n in range(20)}, **short))
    assert short.items() <= told.items()


def test_events_of_an_agent_share_one_notice_with_the_last_number() -> None:
    told = notices(LOOP, 3, 9, [event(5), event(6)])
    assert [(one["type"], one["seq"]) for one in told] == [
        ("execution_events", 4),
        ("mission_iteration_completed", 5),
        ("mission_iteration_completed", 6),
        ("execution_events", 9),
    ]
    assert told[0] == {"type": "execution_events", "execution": "e-1", "mission": "m-1", "seq": 4}


def test_lifecycle_events_alone_bring_no_notice_of_others() -> None:
    assert [one["seq"] for one in notices(LOOP, 1, 2, [event(1), event(2)])] == [1, 2]


@given(st.text() | st.integers() | st.uuids())
def test_the_group_of_an_owner_has_a_name_that_channels_takes(owner: object) -> None:
    for group in (missions_group(owner), execution_group("0190b5a0-0000-7000-8000-000000000000")):
        assert len(group) < 100
        assert group.replace(".", "").replace("-", "").replace("_", "").isascii()
        assert group.replace(".", "").replace("-", "").replace("_", "").isalnum()


def test_two_owners_never_share_a_group() -> None:
    assert len({missions_group(owner) for owner in (1, 11, "a@b.org", "a@b.com", "")}) == 5

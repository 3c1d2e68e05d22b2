"""Which moments a cron means, also when the clocks change, and what is no cron."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st

from agency.errors import InvalidInput
from agency.mission.cron import next_times, parse

MINUTE = timedelta(minutes=1)
CHANGES = {
    "Europe/Berlin": ((2026, 3, 29), (2026, 10, 25)),
    "America/New_York": ((2026, 3, 8), (2026, 11, 1)),
    "Australia/Lord_Howe": ((2026, 10, 4), (2026, 4, 5)),
}
"""The day on which each zone's clocks go forward, and back; Lord Howe's by half an hour."""


def local(cron: str, zone: str, day: tuple[int, int, int], days: int = 1) -> list[str]:
    """What the clock of `zone` shows, with its offset, at each slot of `days` days."""
    here = ZoneInfo(zone)
    start = datetime(*day, tzinfo=here).astimezone(UTC) - MINUTE
    end = datetime(*day, tzinfo=here) + timedelta(days=days)
    slots = takewhile(lambda slot: slot < end.astimezone(UTC), parse(cron, zone).times(start))
    return [slot.astimezone(here).strftime("%d %H:%M %z") for slot in slots]


class TestPlainDays:
    def test_the_next_five_times_are_in_utc_and_later_than_asked_for(self) -> None:
        after = datetime(2026, 11, 27, 7, 30, tzinfo=UTC)  # a Friday, half past eight in Berlin
        slots = next_times("30 8 * * mon-fri", "Europe/Berlin", after)
        assert [slot.isoformat() for slot in slots] == [
            "2026-11-30T07:30:00+00:00",
            "2026-12-01T07:30:00+00:00",
            "2026-12-02T07:30:00+00:00",
            "2026-12-03T07:30:00+00:00",
            "2026-12-04T07:30:00+00:00",
        ]

    def test_a_moment_within_a_minute_is_not_a_slot_again(self) -> None:
        after = datetime(2026, 11, 27, 7, 30, 0, 1, tzinfo=UTC)
        assert next_times("* * * * *", "UTC", after, 1) == [datetime(2026, 11, 27, 7, 31, tzinfo=UTC)]

    def test_a_leap_day_is_waited_for(self) -> None:
        slots = next_times("0 0 29 2 *", "UTC", datetime(2026, 1, 1, tzinfo=UTC), 2)
        assert [slot.year for slot in slots] == [2028, 2032]

    def test_day_of_the_month_and_of_the_week_mean_either_unless_one_is_a_star(self) -> None:
        assert local("0 9 13 * fri", "UTC", (2026, 11, 9), 7) == ["13 09:00 +0000"]
        assert local("0 9 10 * fri", "UTC", (2026, 11, 9), 7) == ["10 09:00 +0000", "13 09:00 +0000"]


class TestClocksGoForward:
    @pytest.mark.parametrize(
        ("zone", "time", "runs_at"),
        [
            ("Europe/Berlin", "30 2 * * *", "29 03:00 +0200"),
            ("America/New_York", "30 2 * * *", "08 03:00 -0400"),
            ("Australia/Lord_Howe", "15 2 * * *", "04 02:30 +1100"),
        ],
    )
    def test_a_time_of_the_day_that_is_skipped_runs_at_the_moment_of_the_change(
        self, zone: str, time: str, runs_at: str
    ) -> None:
        assert local(time, zone, CHANGES[zone][0]) == [runs_at]

    def test_several_skipped_times_and_one_at_the_change_itself_are_one_slot(self) -> None:
        assert local("0,30 2,3 * * *", "Europe/Berlin", (2026, 3, 29)) == ["29 03:00 +0200", "29 03:30 +0200"]

    def test_every_hour_goes_on_in_real_hours(self) -> None:
        slots = local("30 * * * *", "America/New_York", (2026, 3, 8))
        assert len(slots) == 23
        assert slots[:4] == ["08 00:30 -0500", "08 01:30 -0500", "08 03:30 -0400", "08 04:30 -0400"]

    def test_every_twenty_minutes_of_the_skipped_hour_do_not_run(self) -> None:
        assert local("*/20 2 * * *", "Europe/Berlin", (2026, 3, 29)) == []

    def test_half_an_hour_less_leaves_the_other_half(self) -> None:
        slots = local("*/10 2 * * *", "Australia/Lord_Howe", (2026, 10, 4))
        assert slots == ["04 02:30 +1100", "04 02:40 +1100", "04 02:50 +1100"]

    def test_a_day_that_a_zone_skips_runs_at_its_end(self) -> None:
        assert local("0 9 * * *", "Pacific/Apia", (2011, 12, 29), 3) == [
            "29 09:00 -1000",
            "31 00:00 +1400",
            "31 09:00 +1400",
        ]


class TestClocksGoBack:
    @pytest.mark.parametrize(
        ("zone", "time", "runs_at"),
        [
            ("Europe/Berlin", "30 2 * * *", "25 02:30 +0200"),
            ("America/New_York", "30 1 * * *", "01 01:30 -0400"),
            ("Australia/Lord_Howe", "45 1 * * *", "05 01:45 +1100"),
        ],
    )
    def test_a_time_of_the_day_that_comes_twice_runs_the_first_time_only(
        self, zone: str, time: str, runs_at: str
    ) -> None:
        assert local(time, zone, CHANGES[zone][1]) == [runs_at]

    def test_asked_between_the_two_passings_the_next_is_tomorrow(self) -> None:
        after = datetime(2026, 10, 25, 1, 10, tzinfo=UTC)  # 02:10 for the second time
        assert next_times("30 2 * * *", "Europe/Berlin", after, 1) == [
            datetime(2026, 10, 26, 1, 30, tzinfo=UTC)
        ]

    def test_every_hour_goes_on_in_real_hours(self) -> None:
        slots = local("30 * * * *", "Europe/Berlin", (2026, 10, 25))
        assert len(slots) == 25
        assert slots[1:5] == ["25 01:30 +0200", "25 02:30 +0200", "25 02:30 +0100", "25 03:30 +0100"]

    def test_every_other_hour_is_kept_where_the_clock_goes_back_by_half_an_hour(self) -> None:
        slots = local("0 */2 * * *", "Australia/Lord_Howe", (2026, 4, 5))
        assert slots[:3] == ["05 00:00 +1100", "05 02:00 +1030", "05 04:00 +1030"]
        assert len(slots) == 12

    def test_half_an_hour_more_repeats_that_half(self) -> None:
        slots = local("*/15 1 * * *", "Australia/Lord_Howe", (2026, 4, 5))
        assert [slot[3:] for slot in slots] == [
            "01:00 +1100",
            "01:15 +1100",
            "01:30 +1100",
            "01:45 +1100",
            "01:30 +1030",
            "01:45 +1030",
        ]


def shown(cron: str, zone: ZoneInfo, start: datetime, end: datetime) -> Iterator[datetime]:
    """Minute by minute: what the clock shows matches, or, at fixed times, has come for the first time."""
    naive = start.astimezone(zone).replace(tzinfo=None) - timedelta(days=1)
    matching = set(takewhile(lambda wall: wall < naive + timedelta(days=9), CronSim(cron, naive)))
    minute, hour = cron.split()[:2]
    is_fixed = not minute.startswith("*") and not hour.startswith("*")
    latest = (start - MINUTE).astimezone(zone).replace(tzinfo=None)
    while start <= end:
        wall = start.astimezone(zone).replace(tzinfo=None)
        passed = {latest + n * MINUTE for n in range(1, (wall - latest) // MINUTE + 1)}
        if (passed & matching) if is_fixed else wall in matching:
            yield start
        latest = max(latest, wall)
        start += MINUTE


@given(
    minute=st.sampled_from(["*", "*/7", "0", "15", "30", "59", "10,40", "5-50/9"]),
    hour=st.sampled_from(["*", "*/2", "*/3", "0", "1", "2", "3", "1-3", "0,2", "23"]),
    day=st.sampled_from(["*", "*/2", "1-31"]),
    where=st.sampled_from([(zone, day) for zone, days in CHANGES.items() for day in days]),
    begin=st.integers(-1500, 1500),
)
def test_slots_are_what_a_clock_that_is_watched_every_minute_gives(
    minute: str, hour: str, day: str, where: tuple[str, tuple[int, int, int]], begin: int
) -> None:
    name, date = where
    cron, zone = f"{minute} {hour} {day} * *", ZoneInfo(name)
    watched_from = datetime(*date, tzinfo=zone).astimezone(UTC) - timedelta(days=2)
    start = datetime(*date, 3, tzinfo=zone).astimezone(UTC) + begin * MINUTE
    end = start + timedelta(days=1)
    expected = [slot for slot in shown(cron, zone, watched_from, end) if slot > start]
    found = takewhile(lambda slot: slot <= end, parse(cron, name).times(start))
    assert list(found) == expected
    assert parse(cron, name).newest(start, end, 5) == expected[-5:]


class TestNewest:
    def test_the_last_ones_of_a_year_are_found_from_its_end(self) -> None:
        year = datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
        slots = parse("* * * * *").newest(*year, 100)
        assert (len(slots), slots[0], slots[-1]) == (100, year[1] - 99 * MINUTE, year[1])

    def test_few_are_found_however_far_back(self) -> None:
        slots = parse("0 0 1 1 *").newest(
            datetime(2020, 6, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC), 100
        )
        assert [slot.year for slot in slots] == [2021, 2022, 2023, 2024, 2025, 2026]

    def test_none_are_found_where_there_are_none(self) -> None:
        noon = datetime(2026, 6, 1, 12, tzinfo=UTC)
        assert parse("0 12 * * *").newest(noon, noon + timedelta(hours=23), 100) == []


class TestRefusals:
    @pytest.mark.parametrize(
        ("cron", "says"),
        [
            ("", "has 0 fields"),
            ("@daily", "has 1 fields"),
            ("0 0 * *", "has 4 fields"),
            ("*/10 * * * * *", "once a minute is the most"),
            ("0 0 31 2 *", "day of the month"),
            ("0 0 31 4,6,9,11 *", "day of the month"),
            ("* * */20 * 1L", "never comes"),
            ("60 * * * *", "the minute of"),
            ("0 24 * * *", "the hour of"),
            ("0 0 * 13 *", "the month of"),
            ("0 0 * * 8", "the day of the week of"),
            ("*/0 * * * *", "the minute of"),
            ("30-10 * * * *", "the minute of"),
            ("١ * * * *", "the minute of"),
            ("0 " * 101, "more than 200 characters"),
        ],
    )
    def test_what_is_no_cron_says_why_and_shows_one(self, cron: str, says: str) -> None:
        with pytest.raises(InvalidInput, match=says) as refused:
            parse(cron)
        assert refused.value.errors[0]["path"] == "cron"
        assert "'30 8 * * mon-fri'" in str(refused.value)

    @pytest.mark.parametrize(
        ("zone", "says"),
        [
            ("Europe/Berln", "did you mean 'Europe/Berlin'"),
            ("europe/berlin", "did you mean 'Europe/Berlin'"),
            ("Europe", "no time zone"),
            ("", "give a name such as"),
            ("+02:00", "give a name such as"),
            ("../../etc/passwd", "no time zone"),
            ("zone.tab", "no time zone"),
            ("UTC\0", "no time zone"),
            ("localtime", "no time zone"),
            ("x" * 10_000, "no time zone"),
        ],
    )
    def test_what_is_no_time_zone_gets_a_hint(self, zone: str, says: str) -> None:
        with pytest.raises(InvalidInput, match=says) as refused:
            parse("0 0 * * *", zone)
        assert refused.value.errors[0]["path"] == "time_zone"

    @given(
        st.text(alphabet="0123456789*/,-#L W@adfimnorstu", max_size=40)
        | st.lists(st.text(alphabet="0123456789*/,-#LW", min_size=1, max_size=6), min_size=5, max_size=5).map(
            " ".join
        )
    )
    def test_any_text_is_a_cron_that_runs_or_refused(self, text: str) -> None:
        after = datetime(2026, 11, 30, tzinfo=UTC)
        try:
            cron = parse(text)
        except InvalidInput:
            return
        first, second = islice(cron.times(after), 2)
        assert after < first < second
        assert second - first >= MINUTE

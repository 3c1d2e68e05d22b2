"""Cron expressions in a time zone: what is accepted, and which moments it means. Knows no database.

Five fields (minute, hour, day of the month, month, day of the week) as Debian's cron reads them. Times of the
day run once a day whatever the clocks do: one that they jump over at the moment of the jump, one that they
pass twice the first time. With a `*` in the minute or hour, what the clock shows counts: what it jumps over
does not run, what it shows twice runs twice.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from itertools import islice, takewhile
from typing import NoReturn
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from cronsim import CronSim, CronSimError

from agency.errors import InvalidInput

FIELDS = ("minute", "hour", "day of the month", "month", "day of the week")
EXAMPLE = "write five fields such as '30 8 * * mon-fri' (half past eight on weekdays)"
LONGEST = 200
_MACHINES_OWN = {"localtime", "posixrules", "Factory"}
_SOME_YEAR = datetime(2000, 1, 1)
_SECOND, _MINUTE, _DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Cron:
    """A checked expression in its zone; `parse` makes one. Moments are given and returned aware, in UTC."""

    expression: str
    time_zone: str
    zone: tzinfo

    def times(self, after: datetime) -> Iterator[datetime]:
        """The moments later than `after`, one after the other."""
        minute, hour, *_ = self.expression.split()
        by_clock = minute.startswith("*") or hour.startswith("*")
        return self._shown(after) if by_clock else self._once_a_day(after)

    def newest(self, after: datetime, until: datetime, n: int) -> list[datetime]:
        """The last `n` moments later than `after` and not later than `until`, in order.

        Looks back from the end, so that it costs as little after a year as after an hour.
        """
        span = n * _MINUTE
        while True:
            begin = max(after, until - span)
            found = deque(takewhile(lambda moment: moment <= until, self.times(begin)), n)
            if len(found) == n or begin == after:
                return list(found)
            span *= 2

    def _once_a_day(self, after: datetime) -> Iterator[datetime]:
        last = after
        for wall in CronSim(self.expression, self._wall(after)):
            moment = self._passing(wall)
            if moment > last:
                yield moment
                last = moment

    def _passing(self, wall: datetime) -> datetime:
        """When the clock first shows `wall`, or the moment at which it jumps over it."""
        while self._wall(moment := wall.replace(tzinfo=self.zone).astimezone(UTC)) != wall:
            wall += _MINUTE
        return moment

    def _shown(self, after: datetime) -> Iterator[datetime]:
        """As the clock shows them: between two changes of the clock it runs like any other."""
        change, passed = after, self._wall(after)
        while change is not None:
            after, change, offset = change, None, self._offset(change)
            for wall in CronSim(self.expression, passed):
                moment = (wall - offset).replace(tzinfo=UTC)
                change = self._change(after, moment)
                if change is not None:
                    passed = self._wall(change) - _SECOND
                    break
                yield moment
                after = moment

    def _change(self, after: datetime, until: datetime) -> datetime | None:
        """The second in (`after`, `until`] from which the clock shows another offset than at `after`."""
        offset, low = self._offset(after), after
        while low < until:
            high = min(low + _DAY, until)
            if self._offset(high) != offset:
                return self._between(low, high)
            low = high
        return None

    def _between(self, low: datetime, high: datetime) -> datetime:
        offset = self._offset(low)
        while high - low > _SECOND:
            middle = low + (high - low) // 2
            low, high = (middle, high) if self._offset(middle) == offset else (low, middle)
        return high.replace(microsecond=0)

    def _wall(self, moment: datetime) -> datetime:
        return moment.astimezone(self.zone).replace(tzinfo=None, fold=0)

    def _offset(self, moment: datetime) -> timedelta:
        return moment.astimezone(self.zone).utcoffset() or timedelta()


def parse(cron: str, time_zone: str = "UTC") -> Cron:
    """A checked cron; `InvalidInput` names the field, `cron` or `time_zone`, and the fix."""
    zone = _zone(time_zone)
    return Cron(_expression(cron), time_zone, zone)


def next_times(cron: str, time_zone: str, after: datetime, n: int = 5) -> list[datetime]:
    """The next `n` moments later than `after` (aware), in UTC; `InvalidInput` as `parse`."""
    return list(islice(parse(cron, time_zone).times(after), n))


def _expression(cron: str) -> str:
    if len(cron) > LONGEST:
        _refuse("cron", f"has more than {LONGEST} characters; {EXAMPLE}")
    parts = cron.upper().split()
    if len(parts) == len(FIELDS) + 1:
        _refuse("cron", f"{cron!r} has a field for seconds, but once a minute is the most; {EXAMPLE}")
    if len(parts) != len(FIELDS):
        _refuse("cron", f"{cron!r} has {len(parts)} fields; {EXAMPLE}")
    text = " ".join(parts)
    try:
        first = next(CronSim(text, _SOME_YEAR), None)
    except CronSimError as error:
        field = str(error).removeprefix("Bad ").replace("-of-", " of the ")
        _refuse("cron", f"the {field} of {cron!r} cannot be; {EXAMPLE}")
    if first is None:
        _refuse("cron", f"{cron!r} asks for a day that never comes; {EXAMPLE}")
    return text


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    try:
        if name not in _MACHINES_OWN:
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    known = available_timezones() - _MACHINES_OWN
    name = name[:LONGEST]
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else "give a name such as 'Europe/Berlin'"
    if not known:
        hint = "this machine has no time zones: install the package tzdata, or use 'UTC'"
    _refuse("time_zone", f"{name!r} is no time zone of the IANA database; {hint}")


def _refuse(path: str, message: str) -> NoReturn:
    raise InvalidInput(f"{path}: {message}", [{"path": path, "message": message}])

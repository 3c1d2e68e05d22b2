"""The pad on which tools leave what validators read."""

import threading
from datetime import date

import pytest
from pydantic import BaseModel

from agency.errors import InvalidInput
from agency.execution import ToolScratchpad


class Price(BaseModel):
    amount: int


def test_reading_gives_the_newest_value_and_none_where_nothing_was_recorded():
    pad = ToolScratchpad()
    pad.record("total", 1)
    pad.record("total", 2)
    assert pad.read("total") == 2
    assert pad.read("other") is None


def test_entries_gives_every_value_of_the_attempt_in_order():
    pad = ToolScratchpad()
    for value in ("a", None, "c"):
        pad.record("seen", value)
    assert pad.entries("seen") == ["a", None, "c"]
    assert pad.entries("other") == []


def test_clearing_forgets_everything():
    pad = ToolScratchpad()
    pad.record("total", 1)
    pad.clear()
    assert pad.read("total") is None
    assert pad.since(0) == []


def test_values_are_kept_as_the_json_that_a_crash_would_leave_of_them():
    pad = ToolScratchpad()
    pad.record("price", Price(amount=3))
    pad.record("day", date(2026, 3, 12))
    pad.record("pair", (1, {"x": "a\x00b"}))
    assert pad.read("price") == {"amount": 3}
    assert pad.read("day") == "2026-03-12"
    assert pad.read("pair") == [1, {"x": "ab"}]


def test_a_value_that_is_changed_later_stays_as_it_was_recorded():
    pad, value = ToolScratchpad(), [1]
    pad.record("list", value)
    value.append(2)
    assert pad.read("list") == [1]


def test_a_value_that_cannot_be_json_is_refused_by_its_key():
    with pytest.raises(InvalidInput, match="'lock'"):
        ToolScratchpad().record("lock", threading.Lock())


def test_pairs_since_a_mark_restore_the_pad_of_a_run_that_died():
    pad = ToolScratchpad()
    pad.record("a", 1)
    mark = pad.mark()
    pad.record("b", [2])
    pad.record("a", 3)
    assert pad.since(mark) == [["b", [2]], ["a", 3]]

    other = ToolScratchpad()
    other.record("a", 1)
    other.restore(pad.since(mark))
    assert other.entries("a") == [1, 3]
    assert other.read("b") == [2]


def test_tools_in_several_threads_lose_no_value():
    pad = ToolScratchpad()
    start = threading.Barrier(8)

    def work(name: int) -> None:
        start.wait()
        for number in range(200):
            pad.record("all", name * 1000 + number)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(pad.entries("all"))) == 1600

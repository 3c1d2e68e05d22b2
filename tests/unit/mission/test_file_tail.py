"""A file is watched from where it ended; what is added later is read once, whole lines only."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agency.mission.watches import FileTail, View
from agency.mission.watches import file_tail as module
from agency.mission.watches.declared import watch_faults

VIEW = View("x", 1, "the build", datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "build.log"


def tail(log: Path, pattern: str = "done", **attributes: Any) -> FileTail:
    declared = {"NAME": "build", "DESCRIPTION": "The build.", "PATH": log, "PATTERN": pattern, **attributes}
    return type("Build", (FileTail,), declared)()


def add(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(text)


def test_what_was_in_the_file_before_does_not_count(log: Path) -> None:
    add(log, "done\n")
    watch = tail(log)
    memory = watch.begin(VIEW)
    assert watch.look(VIEW, memory).is_over is False
    add(log, "all done now\n")
    found = watch.look(VIEW, memory)
    assert (found.is_over, found.payload) == (True, {"line": "all done now"})


def test_each_line_is_read_once(log: Path) -> None:
    watch = tail(log)
    memory = watch.begin(VIEW)
    add(log, "one\ntwo\n")
    memory = watch.look(VIEW, memory).memory
    assert memory is not None and memory["offset"] == log.stat().st_size
    add(log, "three\n")
    memory = watch.look(VIEW, memory).memory
    assert memory is not None and memory["offset"] == log.stat().st_size


def test_a_line_that_is_still_being_written_is_left_to_the_next_look(log: Path) -> None:
    watch = tail(log, pattern="^done$")
    memory = watch.begin(VIEW)
    add(log, "do")
    found = watch.look(VIEW, memory)
    assert found.is_over is False and found.memory is not None
    add(log, "ne\n")
    assert watch.look(VIEW, found.memory).is_over is True


def test_a_file_that_is_not_there_yet_is_read_from_its_start(log: Path) -> None:
    watch = tail(log)
    memory = watch.begin(VIEW)
    assert watch.look(VIEW, memory).is_over is False
    add(log, "done\n")
    assert watch.look(VIEW, memory).is_over is True


def test_a_file_that_was_cut_or_replaced_is_read_from_its_start(log: Path) -> None:
    add(log, "much that was there before\n")
    watch = tail(log)
    memory = watch.begin(VIEW)
    log.write_text("done\n")
    assert watch.look(VIEW, memory).is_over is True
    log.rename(log.with_suffix(".1"))
    log.write_text("done, and as long as it ever was before\n")
    assert watch.look(VIEW, memory).is_over is True


def test_a_line_longer_than_a_look_reads_does_not_stand_in_the_way(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "READ_AT_ONCE", 10)
    watch = tail(log)
    memory = watch.begin(VIEW)
    add(log, "x" * 25 + "\ndone\n")
    looks = 0
    while not (found := watch.look(VIEW, memory)).is_over:
        assert found.memory is not None and found.memory["offset"] > memory["offset"]
        memory, looks = found.memory, looks + 1
    assert looks == 3


def test_bytes_that_are_no_text_and_long_lines_are_told_in_a_readable_way(log: Path) -> None:
    watch = tail(log)
    memory = watch.begin(VIEW)
    with log.open("ab") as file:
        file.write(b"\xff\xfe done " + b"x" * 9_000 + b"\n")
    found = watch.look(VIEW, memory)
    assert found.is_over and len(found.payload["line"]) == 2_000


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"PATH": None}, "PATH"),
        ({"PATTERN": " "}, "PATTERN is missing"),
        ({"PATTERN": "("}, "PATTERN is no regular expression"),
        ({"NAME": "has space"}, "NAME"),
        ({"DESCRIPTION": ""}, "DESCRIPTION"),
        ({"INTERVAL": 0.5}, "INTERVAL"),
        ({"TIMEOUT": 0}, "TIMEOUT"),
        ({"LOOK_SECONDS": 600}, "LOOK_SECONDS"),
    ],
)
def test_a_faulty_setting_is_named(log: Path, wrong: dict[str, Any], said: str) -> None:
    (fault,) = watch_faults(type(tail(log, **wrong)))
    assert said in fault.message


def test_a_sound_one_has_no_fault(log: Path) -> None:
    assert watch_faults(type(tail(log))) == []

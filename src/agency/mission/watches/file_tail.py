"""Waits for a line in a file that grows, such as a log."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from agency.execution.declaration import Fault
from agency.mission.watches.declared import BaseWatch, Look, View, is_text

READ_AT_ONCE = 1_000_000
LONGEST_LINE = 2_000


class FileTail(BaseWatch):
    """Over when a line that `PATTERN` (a regular expression) is found in is added to the file at `PATH`.

    What was in the file when the wait began does not count. A file that is not there yet, was cut short or
    replaced (rotated) is read from its start. Set `NAME`, `DESCRIPTION`, `PATH` and `PATTERN`.
    """

    PATH: ClassVar[str | os.PathLike[str]]
    PATTERN: ClassVar[str]

    @classmethod
    def faults(cls) -> Iterator[Fault]:
        if not isinstance(getattr(cls, "PATH", None), str | os.PathLike):
            yield Fault("PATH is missing", "Set PATH to the path of a file.")
        pattern = getattr(cls, "PATTERN", None)
        if not is_text(pattern):
            yield Fault("PATTERN is missing", "Set PATTERN to a regular expression.")
            return
        try:
            re.compile(str(pattern))
        except re.error as exc:
            yield Fault(f"PATTERN is no regular expression: {exc}", "Correct PATTERN.")

    def begin(self, view: View) -> dict[str, Any]:
        try:
            found = Path(self.PATH).stat()
        except FileNotFoundError:
            return {"offset": 0, "file": None}
        return {"offset": found.st_size, "file": found.st_ino}

    def look(self, view: View, memory: dict[str, Any]) -> Look:
        try:
            with Path(self.PATH).open("rb") as file:
                found = os.fstat(file.fileno())
                is_same = found.st_ino == memory["file"] and found.st_size >= memory["offset"]
                offset = memory["offset"] if is_same else 0
                file.seek(offset)
                data = file.read(READ_AT_ONCE)
        except FileNotFoundError:
            return Look(False, memory={"offset": 0, "file": None})
        # A line that is still being written is left to the next look, unless it fills a whole one.
        whole = data if len(data) == READ_AT_ONCE and b"\n" not in data else data[: data.rfind(b"\n") + 1]
        for line in whole.decode("utf-8", "replace").splitlines():
            if re.search(self.PATTERN, line):
                return Look(True, payload={"line": line[:LONGEST_LINE]})
        return Look(False, memory={"offset": offset + len(whole), "file": found.st_ino})

"""What the supervisor prints: each line with the name of the program that said it."""

import contextlib
import json
import os
import sys
from typing import TextIO

COLOURS = (36, 33, 32, 35, 34, 31)
WIDTH = 10


class Console:
    """Lines to a stream, coloured on a terminal (unless `NO_COLOR` is set). Its end ends nothing else.

    With `AGENCY_LOG_FORMAT=json` every line is a JSON object, also of programs that know of no format.
    """

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._coloured = self._out.isatty() and not os.environ.get("NO_COLOR")
        self._as_json = os.environ.get("AGENCY_LOG_FORMAT", "").strip().lower() == "json"
        self._names: list[str] = []

    def say(self, name: str, line: str) -> None:
        if self._as_json:
            self._print(line if line.startswith("{") else json.dumps({"logger": name, "message": line}))
            return
        prefix = f"{name:<{WIDTH}}|"
        if self._coloured:
            prefix = f"\x1b[{self._colour(name)}m{prefix}\x1b[0m"
        self._print(f"{prefix} {line}")

    def _print(self, line: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            print(line, file=self._out, flush=True)

    def _colour(self, name: str) -> int:
        if name not in self._names:
            self._names.append(name)
        return COLOURS[self._names.index(name) % len(COLOURS)]

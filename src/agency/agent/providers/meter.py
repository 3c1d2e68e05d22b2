"""Shows how far a download is by looking at what has arrived in its work directory.

A bar on a terminal, else a plain line now and then. Knows nothing of where the bytes come from.
"""

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

_LOOK = 0.5
_LINE_EVERY = 10.0


class Meter:
    """Measures `folder` in a thread while the `with` block fills it; `total` is the expected bytes."""

    def __init__(self, folder: Path, total: int, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._total = max(total, 1)
        self._say = say
        self._done = threading.Event()
        self._bar: Any = None
        self._thread = threading.Thread(target=self._watch, name="agency-meter", daemon=True)

    def __enter__(self) -> "Meter":
        if sys.stderr.isatty():
            self._bar = _bar()
            self._bar.start()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        if self._bar is not None:
            self._bar.stop()

    def arrived(self) -> int:
        """Bytes in the folder so far, never more than the expected total."""
        return min(self._total, sum(_size(path) for path in self._folder.rglob("*")))

    def _watch(self) -> None:
        task = self._bar.add_task("model", total=self._total) if self._bar else None
        said, quiet = "", 0.0
        while not self._done.wait(_LOOK):
            if self._bar is not None:
                self._bar.update(task, completed=self.arrived())
                continue
            quiet += _LOOK
            if quiet >= _LINE_EVERY and (line := self.line()) != said:
                self._say(line)
                said, quiet = line, 0.0

    def line(self) -> str:
        """Where the download stands, in one line."""
        arrived = self.arrived()
        if arrived == self._total:
            return "  all of it has arrived; joining and checking"
        return f"  {arrived / 1e6:,.0f} of {self._total / 1e6:,.0f} MB ({100 * arrived // self._total} %)"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)

"""One program of a service and its present process: how it is started, what it says, how it ends."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agency.runtime import lifeline

LONGEST_LINE = 64 * 1024
READS = 4


@dataclass(frozen=True)
class Program:
    """What to run. It starts when all of `after` have been ready once.

    It is ready when it beats (see `lifeline`), or else when `ready` says so. `hears` gets each line that
    it prints and returns whether the line was meant for it alone. `last`: stopped only when all others
    have ended. `slow_start`: may take any time to become ready.
    """

    name: str
    command: tuple[str, ...]
    after: tuple[str, ...] = ()
    ready: Callable[[], bool] | None = None
    hears: Callable[[str], bool] | None = None
    slow_start: bool = False
    last: bool = False
    descriptors: tuple[int, ...] = ()

    @property
    def beats(self) -> bool:
        return self.ready is None


class Process:
    """A running program. Its output and its beats are read without waiting."""

    def __init__(self, program: Program, environ: Mapping[str, str]) -> None:
        self.program = program
        self.started_at = time.monotonic()
        self.beats, beats_in = os.pipe()
        os.set_blocking(self.beats, False)
        os.set_blocking(beats_in, False)
        try:
            self._popen = subprocess.Popen(
                program.command,
                env={**environ, lifeline.PARENT: str(os.getpid()), lifeline.BEAT: str(beats_in)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(beats_in, *program.descriptors),
                start_new_session=True,
            )
        finally:
            os.close(beats_in)
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._pipes = (self._popen.stdin, self._popen.stdout)
        self.output = self._popen.stdout.fileno()
        os.set_blocking(self.output, False)
        self.silent = False
        self._rest = b""

    @property
    def pid(self) -> int:
        return self._popen.pid

    def ending(self) -> int | None:
        """Its exit status, negative for a signal; `None` while it runs."""
        return self._popen.poll()

    def beaten(self) -> bool:
        """Whether it gave a sign of life since the last look."""
        return bool(_read(self.beats))

    def lines(self) -> list[str]:
        """What it printed since the last look, in whole lines; sets `silent` at the end of its output."""
        for _ in range(READS):
            chunk = _read(self.output)
            if not chunk:
                self.silent = chunk is not None
                break
            self._rest += chunk
        *lines, self._rest = self._rest.split(b"\n")
        if self._rest and (self.silent or len(self._rest) >= LONGEST_LINE):
            lines, self._rest = [*lines, self._rest], b""
        return [line.decode(errors="replace").rstrip() for line in lines]

    def ask_to_end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._popen.terminate()

    def kill(self) -> None:
        """It and all that it started: they share a process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """After its end: leave nothing of it behind."""
        self.kill()
        self._popen.wait()
        os.close(self.beats)
        for pipe in self._pipes:
            pipe.close()


def _read(descriptor: int) -> bytes | None:
    """What is there; empty at the end, `None` when there is nothing yet."""
    try:
        return os.read(descriptor, LONGEST_LINE)
    except BlockingIOError:
        return None

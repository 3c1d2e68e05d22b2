"""Runs the programs of a service: starts them in order, restarts them, passes on what they say, stops them.

Knows nothing of what the programs are. One thread and one selector; nothing here blocks for long.
"""

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable, Iterator, Mapping

from agency.runtime.program import Process, Program

MISCONFIGURED = os.EX_CONFIG
"""Exit status of a program that will fail again until a person changes something."""

FIRST_BACKOFF, LONGEST_BACKOFF = 0.5, 30.0
STEADY_AFTER = 60.0
SILENT_AFTER = 120.0
READY_WITHIN = 60.0
TRIES_TO_START = 5
LOOK = 1.0
PROBE = 0.03

Say = Callable[[str, str], None]


class GaveUp(Exception):
    """A program cannot run; the message is one sentence for the person who started the service."""


class Child:
    """A program's place in the household, whether or not a process runs in it just now."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.process: Process | None = None
        self.ready = self.was_ready = False
        self.failures = 0
        self.heard_at = self.start_at = 0.0
        self.last_line = ""

    def mark_ready(self) -> None:
        self.ready = self.was_ready = True

    def hangs(self, process: Process, now: float) -> bool:
        if not self.ready:
            return not self.program.slow_start and now - process.started_at > READY_WITHIN
        return self.program.beats and now - self.heard_at > SILENT_AFTER


class Household:
    """The children of one supervisor. All of them get `environ`; `say(name, line)` shows what they say."""

    def __init__(self, environ: Mapping[str, str], say: Say) -> None:
        self.children: dict[str, Child] = {}
        self._environ = environ
        self._say = say
        self._hurried = False
        self._selector = selectors.DefaultSelector()
        self._bell = os.pipe()
        for end in self._bell:
            os.set_blocking(end, False)
        self._selector.register(self._bell[0], selectors.EVENT_READ)

    @contextlib.contextmanager
    def listening(self, *numbers: signal.Signals, then: Callable[[], None]) -> Iterator[None]:
        """For the household's lifetime: call `then` when one of the signals arrives.

        They, and the end of a child, wake `turn()`.
        """
        handlers = {number: lambda *_: then() for number in numbers} | {signal.SIGCHLD: lambda *_: None}
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        bell_before = signal.set_wakeup_fd(self._bell[1], warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(bell_before)
            for number, handler in before.items():
                signal.signal(number, handler)
            self._selector.close()
            for end in self._bell:
                os.close(end)

    def add(self, program: Program) -> None:
        """Have it run from the next turn on."""
        self.children[program.name] = Child(program)

    def ready(self, *names: str) -> bool:
        """Whether the named programs, or else all, have been ready."""
        return all(self.children[name].was_ready for name in names or self.children)

    def turn(self) -> None:
        """Start what is due, then wait until something happens and see to it."""
        now = time.monotonic()
        for child in self._waiting():
            if now >= child.start_at:
                self._start(child)
        self._listen(self._pause(now))
        for child in self.children.values():
            if child.process:
                self._see_to(child, child.process, time.monotonic())

    def stop(self, within: float) -> None:
        """Ask all to end, the `last` ones after the others; kill what is left when the time is up."""
        until = time.monotonic() + within
        first, last = ([c for c in self.children.values() if c.program.last is one] for one in (False, True))
        self._end(first, until - within / 5)
        self._end(last, until)

    def hurry(self) -> None:
        """Let `stop` wait no longer."""
        self._hurried = True

    def _waiting(self) -> list[Child]:
        return [
            child
            for child in self.children.values()
            if not child.process and all(self.children[name].was_ready for name in child.program.after)
        ]

    def _start(self, child: Child) -> None:
        child.process = process = Process(child.program, self._environ)
        child.ready = False
        self._selector.register(process.output, selectors.EVENT_READ, lambda: self._pass_on(child, process))
        self._selector.register(process.beats, selectors.EVENT_READ, lambda: self._feel(child, process))

    def _pause(self, now: float) -> float:
        if any(child.process and child.program.ready and not child.ready for child in self.children.values()):
            return PROBE
        return max(0.0, min([LOOK, *(child.start_at - now for child in self._waiting())]))

    def _listen(self, timeout: float) -> None:
        for key, _ in self._selector.select(timeout):
            if key.data:
                key.data()
            else:
                os.read(self._bell[0], 4096)

    def _feel(self, child: Child, process: Process) -> None:
        if process.beaten():
            child.heard_at = time.monotonic()
            if child.program.beats:
                child.mark_ready()
        else:
            self._selector.unregister(process.beats)

    def _pass_on(self, child: Child, process: Process) -> None:
        for line in process.lines():
            if line and not (child.program.hears and child.program.hears(line)):
                child.last_line = line
                self._say(child.program.name, line)
        if process.silent:
            self._selector.unregister(process.output)

    def _see_to(self, child: Child, process: Process, now: float) -> None:
        if not child.ready and child.program.ready and child.program.ready():
            child.mark_ready()
        status = process.ending()
        if status is not None:
            self._mourn(child, process, status, now)
        elif child.hangs(process, now):
            self._say(child.program.name, "does not answer and is killed")
            process.kill()

    def _mourn(self, child: Child, process: Process, status: int, now: float) -> None:
        self._bury(child, process)
        if status == MISCONFIGURED:
            raise GaveUp(child.last_line)
        child.failures = 1 if now - process.started_at > STEADY_AFTER else child.failures + 1
        name = child.program.name
        if not child.was_ready and child.failures >= TRIES_TO_START:
            last = child.last_line or "it said nothing"
            raise GaveUp(f"{name} ended {child.failures} times before it was ready ({last}).")
        pause = min(FIRST_BACKOFF * 2 ** (child.failures - 1), LONGEST_BACKOFF)
        child.start_at = now + pause
        self._say(name, f"ended ({_said(status)}); starts again in {pause:g} s")

    def _end(self, stage: list[Child], until: float) -> None:
        alive = {child: child.process for child in stage if child.process}
        for process in alive.values():
            process.ask_to_end()
        while alive:
            late = self._hurried or time.monotonic() >= until
            for child, process in list(alive.items()):
                if late and process.ending() is None:
                    self._say(child.program.name, "did not end in time and is killed")
                if late or process.ending() is not None:
                    self._bury(child, alive.pop(child))
            self._listen(PROBE)

    def _bury(self, child: Child, process: Process) -> None:
        """Pass on its last words, then clear away its pipes and whatever it started."""
        process.kill()
        if not process.silent:
            self._pass_on(child, process)
        for source in (process.output, process.beats):
            with contextlib.suppress(KeyError):
                self._selector.unregister(source)
        process.close()
        child.process, child.ready = None, False


def _said(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"

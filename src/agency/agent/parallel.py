"""Runs jobs at the same time, each on a thread of its own; what they leave is finished on the run's thread.

The threads are daemons made for the call, so a tool that hangs holds up no other run.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass, field

from agency.agent.jobs import Job, Outcome, failure
from agency.agent.relay import Relay
from agency.errors import RunReleased, RunSignal

WIDTH = 16
POLL = 0.2


@dataclass(slots=True)
class Parallel:
    """`begin` may answer instead of a job, `finish` keeps what came of it; both as `checkpoint` are only
    used on the thread that `run` is called on, which serves the `relay` meanwhile.
    """

    relay: Relay
    checkpoint: Callable[[], None]
    begin: Callable[[Job], Outcome | None]
    finish: Callable[[Job, Outcome], None]
    running: dict[Future[Outcome], tuple[Job, float | None]] = field(
        default_factory=dict[Future[Outcome], tuple[Job, float | None]]
    )

    def run(self, jobs: deque[Job]) -> None:
        """Run all jobs. A `RunSignal` is raised after the jobs that were started have ended."""
        signal: RunSignal | None = None
        self.relay.open()
        try:
            while self.running or (jobs and signal is None):
                try:
                    while jobs and len(self.running) < WIDTH and signal is None:
                        self._start(jobs.popleft())
                except RunSignal as stop:
                    signal = stop
                signal = self._collect() or signal
        finally:
            self.relay.close()
        if signal is not None:
            raise signal

    def _start(self, job: Job) -> None:
        answered = self.begin(job)
        if answered is not None:
            self.finish(job, answered)
            return
        timeout = None if job.tool.is_async else job.tool.timeout
        give_up_at = None if timeout is None else time.monotonic() + timeout
        future = on_thread(lambda: job.work(give_up_at), f"tool-{job.call.name}")
        self.running[future] = (job, give_up_at)
        future.add_done_callback(self.relay.wake)

    def _collect(self) -> RunSignal | None:
        """Wait for the next jobs to end or run out of time; return the signal that one of them raised."""
        if not self.running:
            return None
        now = time.monotonic()
        waits = [moment - now for _, moment in self.running.values() if moment is not None]
        self.relay.serve(max(0.0, min([POLL, *waits])))
        signal: RunSignal | None = None
        for future, (job, give_up_at) in list(self.running.items()):
            if future.done():
                del self.running[future]
                raised = future.exception()
                if isinstance(raised, RunSignal):
                    signal = raised
                else:
                    self.finish(job, future.result())
            elif give_up_at is not None and time.monotonic() >= give_up_at:
                del self.running[future]
                self.finish(job, _given_up(job))
        return (self._released() if self.running else None) or signal

    def _released(self) -> RunReleased | None:
        """A run that gives its claim back lets the tools that it started end; a cancel leaves at once."""
        try:
            self.checkpoint()
        except RunReleased as stop:
            return stop
        return None


def on_thread(work: Callable[[], Outcome], name: str) -> Future[Outcome]:
    """Run `work` on a daemon thread of its own, with the caller's context variables."""
    future: Future[Outcome] = Future()
    variables = copy_context()

    def body() -> None:
        try:
            future.set_result(variables.run(work))
        except BaseException as exc:
            future.set_exception(exc)

    threading.Thread(target=body, name=name, daemon=True).start()
    return future


def _given_up(job: Job) -> Outcome:
    if job.inner is not None:
        job.inner.journal.abandoned = True
    return failure(job.call, f"{job.call.name} gave no result within {job.tool.timeout:g} seconds")

"""The worker and dispatcher processes of a run, each replaceable: started as a project would start them."""

import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.processes import Processes, eventually


@dataclass(slots=True)
class Member:
    """One process, and the pipe into which it says that it is well.

    `stopped` while SIGSTOP holds it, `leaving` once it was asked to end, `struck` once it was killed.
    """

    role: str
    process: "subprocess.Popen[bytes]"
    beats: int
    stopped: bool = False
    leaving: bool = False
    struck: bool = False
    _ready: bool = False

    @property
    def ready(self) -> bool:
        """Whether it runs and has looked for work once."""
        if not self._ready:
            with contextlib.suppress(BlockingIOError):
                self._ready = bool(os.read(self.beats, 1))
        return self._ready and self.running

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process.poll() is None and not self.stopped and not self.leaving

    def children(self) -> list[int]:
        """Its own processes, which end with it: what has lost workers runs in one of these."""
        listed = Path(f"/proc/{self.pid}/task")
        with contextlib.suppress(OSError):
            return [int(pid) for one in listed.iterdir() for pid in (one / "children").read_text().split()]
        return []

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)


class Fleet(Processes):
    """`threads` slots in each worker; `size` says how many of each role there should be."""

    def __init__(
        self,
        home: Path,
        database: str,
        broker: str | None,
        environ: dict[str, str],
        threads: int,
        **agency: Any,
    ) -> None:
        super().__init__(home, database, broker, **agency)
        self.environ |= environ | {"DJANGO_SETTINGS_MODULE": "tests.faults.harness.settings"}
        # Each start would compile everything anew.
        self.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        self._broker, self._threads = broker, threads
        self.size: dict[str, int] = {}
        self.members: list[Member] = []
        self.deserters: list[Member] = []
        """Those that ended and had not been asked to."""

    def adopt(self) -> None:
        """Make this process one of the run: same settings, same database."""
        os.environ.update(self.environ)

    def keep(self) -> None:
        """Start what is missing: the place of a dead or leaving process is filled at once."""
        for one in [one for one in self.members if one.process.poll() is not None]:
            self.members.remove(one)
            os.close(one.beats)
            if not (one.struck or one.leaving):
                self.deserters.append(one)
        for role, wanted in self.size.items():
            here = sum(one.role == role and not one.leaving for one in self.members)
            for _ in range(wanted - here):
                self.members.append(self._start(role))

    @property
    def queue(self) -> str:
        """The queue that carries the wake-ups."""
        return self.environ["AGENCY_FAULTS_QUEUE"]

    def assemble(self) -> None:
        """Start everyone and wait until all have looked for work."""
        self.keep()
        eventually(lambda: all(one.ready for one in self.members), within=120.0, log=self.log)

    def ready(self, role: str) -> list[Member]:
        return [one for one in self.members if one.role == role and one.ready]

    def _start(self, role: str) -> Member:
        beats, heard = os.pipe()
        os.set_blocking(beats, False)
        try:
            return Member(role, self._process(role, heard), beats)
        finally:
            os.close(heard)

    def _process(self, role: str, heard: int) -> "subprocess.Popen[bytes]":
        if role == "dispatcher":
            return self.command("agency_dispatcher", heard=heard)
        if self._broker:
            return self.celery_worker(size=self._threads, heard=heard)
        return self.command("agency_worker", "--threads", str(self._threads), heard=heard)

"""Real processes for a test: started with the test's database, killed at its end at the latest."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agency.runtime import lifeline

ROOT = Path(__file__).resolve().parents[2]
PR_SET_PDEATHSIG = 1


class Processes:
    """Starts processes with a common environment; `settings` is their `AGENCY` setting."""

    def __init__(self, home: Path, database: str, broker: str | None = None, **settings: Any) -> None:
        self._home = home
        if broker:
            settings["CELERY_APP"] = "tests.faults.celery.app"
        self._running: list[subprocess.Popen[bytes]] = []
        self.environ = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.faults.settings",
            "AGENCY_FAULTS_DATABASE": database,
            "AGENCY_FAULTS_BROKER": broker or "",
            "AGENCY_FAULTS_QUEUE": f"faults-{home.name}",
            "AGENCY_FAULTS_SETTINGS": json.dumps(settings),
        }

    def claimer(self, execution_id: object) -> "subprocess.Popen[bytes]":
        return self.start("-m", "tests.faults.claimer", str(execution_id))

    def command(self, *arguments: str, heard: int | None = None) -> "subprocess.Popen[bytes]":
        """A management command."""
        return self.start("-m", "django", *arguments, heard=heard)

    def celery_worker(
        self, pool: str = "threads", size: int = 4, heard: int | None = None
    ) -> "subprocess.Popen[bytes]":
        options = ("--pool", pool, "--concurrency", str(size), "--loglevel", "WARNING")
        # One name each: they would quarrel about the queue of their remote control.
        name = ("--hostname", f"w{len(self._running)}@%h")
        light = ("--without-gossip", "--without-mingle", "--without-heartbeat")
        program = ("-m", "celery", "-A", "tests.faults.celery", "--quiet", "worker")
        return self.start(*program, *name, *options, *light, heard=heard)

    def start(
        self,
        *arguments: str,
        stdin: int = subprocess.DEVNULL,
        stdout: int | None = None,
        heard: int | None = None,
    ) -> "subprocess.Popen[bytes]":
        """Python with these arguments; what it says goes into the log.

        It writes into the pipe `heard` that it is ready and well.
        """
        log = self._home / f"process-{len(self._running)}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=ROOT,
                env=self.environ | ({} if heard is None else {lifeline.BEAT: str(heard)}),
                pass_fds=() if heard is None else (heard,),
                stdin=stdin,
                stdout=out if stdout is None else stdout,
                stderr=out,
                start_new_session=True,
                preexec_fn=die_with_parent if sys.platform == "linux" else None,
            )
        self._running.append(process)
        return process

    def log(self) -> str:
        """What all of them have said, for the message of a failed test."""
        return "\n".join(
            path.read_text(errors="replace") for path in sorted(self._home.glob("process-*.log"))
        )

    def stop(self) -> None:
        for process in self._running:
            process.kill()
            process.communicate()


def kill(process: "subprocess.Popen[bytes]") -> None:
    """As the kernel does it when memory runs out: without a word."""
    process.send_signal(signal.SIGKILL)
    process.wait()


def eventually(true: Callable[[], Any], within: float = 240.0, log: Callable[[], str] | None = None) -> Any:
    """The first truthy value of `true()`; fails after `within` seconds, with the processes' log.

    That bounds a wait and costs nothing otherwise: a busy machine may take a minute to start a process.
    """
    until = time.monotonic() + within
    while not (value := true()):
        if time.monotonic() > until:
            raise AssertionError(f"not so within {within:g} s\n{log() if log else ''}")
        time.sleep(0.02)
    return value


def die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

"""The processes that are measured, and what they cost: CPU seconds and resident bytes."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORKER = ("-m", "celery", "-A", "benchmarks.queue.celery", "--quiet", "worker", "--pool", "threads")
LIGHT = ("--loglevel", "WARNING", "--without-gossip", "--without-mingle", "--without-heartbeat")


@contextlib.contextmanager
def running(log: Path, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A Python process of this tree, ended at the end of the block."""
    environ = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, *arguments], cwd=ROOT, env=environ, stdout=out, stderr=out
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def worker(log: Path, threads: int = 8) -> contextlib.AbstractContextManager["subprocess.Popen[bytes]"]:
    return running(log, *WORKER, "--concurrency", str(threads), *LIGHT)


def dispatcher(log: Path) -> contextlib.AbstractContextManager["subprocess.Popen[bytes]"]:
    return running(log, "-m", "django", "agency_dispatcher")


def cpu_seconds(process: "subprocess.Popen[bytes]") -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(process: "subprocess.Popen[bytes]") -> float:
    """Megabytes of memory that the process holds, without what it shares with its files."""
    for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) / 1024
    raise LookupError("the kernel does not say how much memory the process holds")


class Log:
    """The lines that the worker wrote."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def lines(self, kind: str) -> list[tuple[str, int, float, float]]:
        split = [line.split() for line in self.path.read_text(encoding="ascii").splitlines()]
        return [(one[1], int(one[2]), float(one[3]), float(one[4])) for one in split if one[0] == kind]

    def await_lines(self, kind: str, count: int, within: float) -> list[tuple[str, int, float, float]]:
        until = time.monotonic() + within
        while len(found := self.lines(kind)) < count:
            if time.monotonic() > until:
                raise TimeoutError(f"{len(found)} of {count} {kind} lines within {within:g} s")
            time.sleep(0.1)
        return found

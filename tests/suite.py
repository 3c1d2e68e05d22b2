"""Runs the whole suite: on SQLite and on PostgreSQL side by side, then what runs the local models.

Arguments go to pytest. All sessions run whatever came of the others; a failure of any is the suite's.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

NOTHING_TO_RUN = 5


class Session:
    """A session of pytest that has begun; what it says is kept until somebody waits for it."""

    def __init__(self, name: str, home: Path, *arguments: str) -> None:
        self._name = name
        self._said = home / f"{name}.log"
        color = "yes" if sys.stdout.isatty() else "auto"
        command = [sys.executable, "-m", "pytest", "--color", color, *arguments]
        environment = {**os.environ, "AGENCY_TEST_COUNTS": str(home / "counts")}
        with self._said.open("wb") as out:
            self._process = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT)

    def result(self) -> int:
        """Its exit code, after all that it says has been passed on as it comes."""
        print(f"\nThe suite on {self._name}", flush=True)
        with self._said.open("rb") as said:
            running = True
            while running:
                running = self._is_running(0.2)
                sys.stdout.buffer.write(said.read())
                sys.stdout.buffer.flush()
        return self._process.returncode

    def _is_running(self, within: float) -> bool:
        try:
            self._process.wait(within)
        except subprocess.TimeoutExpired:
            return True
        return False

    def stop(self, within: float = 15.0) -> None:
        """Ctrl-C has reached it too: it ends its servers by itself."""
        if self._is_running(within):
            self._process.kill()
            self._process.wait()


def counted(path: Path) -> dict[str, Counter[str]]:
    """Outcomes by database, of all sessions that have ended."""
    ran: dict[str, Counter[str]] = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        counts = json.loads(line)
        ran.setdefault(counts.pop("database"), Counter()).update(counts)
    return ran


def show(ran: dict[str, Counter[str]]) -> None:
    print("\nWhere the tests ran")
    for database in sorted(ran, reverse=True):
        counts = ran[database]
        said = ", ".join(f"{n} {outcome}" for outcome, n in counts.items() if n or outcome == "passed")
        print(f"{database}: {said}", flush=True)


def main(arguments: list[str]) -> int:
    began: list[Session] = []
    with tempfile.TemporaryDirectory(prefix="agency-suite-") as directory:
        home = Path(directory)

        def begin(name: str, *of: str) -> Session:
            began.append(Session(name, home, *of, *arguments))
            return began[-1]

        try:
            side_by_side = [
                begin("sqlite", "--db", "sqlite", "--part", "code"),
                begin("postgres", "--db", "postgres"),
            ]
            codes = [session.result() for session in side_by_side]
            # A model takes all the cores there are.
            codes.append(begin("local models", "--part", "models").result())
        finally:
            for session in began:
                session.stop()
        show(counted(home / "counts"))
    ran = [code for code in codes if code != NOTHING_TO_RUN] or [NOTHING_TO_RUN]
    return next((code for code in ran if code), 0)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)

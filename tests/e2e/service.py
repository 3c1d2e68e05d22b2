"""The service as a user has it: the installed command, a home of its own, and an HTTP client with a token."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parents[2]
AGENCY = Path(sys.executable).with_name("agency")
WITHIN = 240.0
FINAL = {"finished", "failed", "cancelled"}


def eventually(look: Callable[[], Any], within: float = WITHIN, log: Callable[[], str] = str) -> Any:
    """The first truthy value of `look()`; fails with the log when the time is up."""
    until = time.monotonic() + within
    while not (found := look()):
        assert time.monotonic() < until, f"not so within {within:g} s\n{log()}"
        time.sleep(0.05)
    return found


def state_of(pid: int) -> str:
    """The kernel's letter for the process's state; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def is_alive(pid: int) -> bool:
    return state_of(pid) not in {"", "Z"}


def descendants(pid: int) -> dict[int, str]:
    """All processes below `pid`, with their command lines."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents.setdefault(int(stat.read_text().rpartition(")")[2].split()[1]), []).append(
                int(stat.parent.name)
            )
        except OSError:
            continue
    found: dict[int, str] = {}
    waiting = [pid]
    while waiting:
        for child in parents.get(waiting.pop(), []):
            waiting.append(child)
            with contextlib.suppress(OSError):  # it may have ended since
                found[child] = Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
    return found


def _is_kept(name: str) -> bool:
    """The tests' own settings must not reach the service, those of the model's cache must."""
    return name in {"AGENCY_CACHE", "AGENCY_MODEL_MIRROR"} or not name.startswith(("AGENCY_", "DJANGO_"))


class Service:
    """`agency up` with the tests' agents, whose model follows the script in its task."""

    def __init__(self, home: Path, **environ: str) -> None:
        self.home = home
        self.environ = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("AGENCY_", "DJANGO_"))
            },
            "AGENCY_HOME": str(home),
            "AGENCY_PORT": "0",
            "AGENCY_APPS": "tests.faults.app",
            "AGENCY_APPS_DIR": str(ROOT),
            "AGENCY_MODEL": "scripted:tests.faults.app.models:model",
            "AGENCY_TEST_BILL": str(home.parent / "bill"),
            "NO_COLOR": "1",
            **environ,
        }
        self._log = home.parent / "up.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Service":
        with self._log.open("wb") as out:
            self.process = subprocess.Popen(
                [AGENCY, "up"], env=self.environ, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
        return self

    def ready(self) -> "Service":
        """Wait until it says so."""
        eventually(lambda: "Ready at" in self.log() or self.ended(), log=self.log)
        assert self.process is not None
        assert self.process.poll() is None, self.log()
        return self

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def child(self, role: str) -> int:
        """The pid of the process in this role."""
        return next(pid for pid, command in descendants(self.pid).items() if command.strip().endswith(role))

    def stop(self, how: signal.Signals = signal.SIGINT) -> int:
        assert self.process is not None
        if not self.ended():
            self.process.send_signal(how)
        return self.process.wait(WITHIN)

    def command(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Another `agency` command in the same home."""
        return subprocess.run(
            [AGENCY, *arguments],
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=WITHIN,
            check=False,
        )

    def client(self) -> "Client":
        made = self.command("token", "create", "test", "--json")
        assert made.returncode == 0, made.stderr
        url = json.loads((self.home / "run" / "service.json").read_text())["url"]
        return Client(url, json.loads(made.stdout)["token"], self.log)

    def bill(self) -> list[str]:
        """What the scripted model and the tools wrote down, each call a line."""
        path = Path(self.environ["AGENCY_TEST_BILL"])
        return path.read_text().splitlines() if path.exists() else []


class Client:
    """The HTTP API, with what these tests ask of it."""

    def __init__(self, url: str, token: str, log: Callable[[], str]) -> None:
        self._log = log
        self.http = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=WITHIN, trust_env=False
        )

    def submit(self, task: str) -> str:
        """Have the tests' errand run; the execution's URL."""
        agents = self.http.get("/api/agents").json()["items"]
        if not agents:
            order = {"name": "clerk", "agent_key": "fault-clerk"}
            agents = [self.http.post("/api/agents", json=order).json()]
        order = {"agent": agents[0]["id"], "execution_key": "fault-errand", "input": {"task": task}}
        answer = self.http.post("/api/executions", json=order)
        assert answer.status_code == 202, answer.text
        return str(answer.headers["Location"])

    def execution(self, url: str) -> dict[str, Any]:
        return dict(self.http.get(url).json())

    def ended(self, url: str, within: float = WITHIN) -> dict[str, Any]:
        """The execution in its terminal state."""

        def look() -> dict[str, Any] | None:
            found = self.execution(url)
            return found if found["status"] in FINAL else None

        return dict(eventually(look, within, lambda: f"{self.execution(url)}\n{self._log()}"))


def running(home: Path, **environ: str) -> Iterator[Service]:
    """A service that is started, ready, and ended with the test."""
    service = Service(home, **environ).start()
    try:
        yield service.ready()
    finally:
        service.stop()


def seconds_to_ready(log: str) -> float:
    found = re.search(r"Ready at \S+ after ([\d.]+) s", log)
    assert found is not None, log
    return float(found[1])

"""The world outside of agency: fake provider and effect server, as processes with logs of their own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.faults.harness.app.agents import EFFECTS
from tests.faults.harness.app.client import PROVIDER
from tests.faults.processes import ROOT, die_with_parent

PATIENCE = 20.0


class Outside:
    """Both servers while the block lasts; `environ` tells workers where they are."""

    def __init__(self, home: Path, provider: dict[str, Any]) -> None:
        self._home = home
        self._provider = provider
        self._running: list[subprocess.Popen[bytes]] = []
        self.environ: dict[str, str] = {}

    def __enter__(self) -> "Outside":
        self._start("provider", json.dumps(self._provider))
        self._start("effects")
        self.environ = {PROVIDER: self._address("provider"), EFFECTS: self._address("effects")}
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running:
            process.send_signal(signal.SIGTERM)
        for process in self._running:
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self, name: str, *arguments: str) -> None:
        environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        with (self._home / f"{name}.log").open("wb") as out:
            self._running.append(
                subprocess.Popen(
                    [sys.executable, "-m", f"tests.faults.harness.{name}", str(self._home), *arguments],
                    cwd=ROOT,
                    env=environ,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=die_with_parent if sys.platform == "linux" else None,
                )
            )

    def _address(self, name: str) -> str:
        until = time.monotonic() + PATIENCE
        path = self._home / f"{name}.address"
        while not path.exists():
            if time.monotonic() > until:
                raise RuntimeError(f"{name} did not start:\n{(self._home / f'{name}.log').read_text()}")
            time.sleep(0.02)
        return path.read_text()

"""What is shown beside the runs: the naive design under the same faults, and an upgrade in flight."""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

BEFORE = "HEAD~1"


def naive() -> dict[str, Any]:
    """What the common design loses and repeats. No target: it is the contrast."""
    done = _python("-m", "tests.faults.naive")
    if done.returncode:
        return {"missed": [f"the naive design did not run: {done.stderr[-300:]}"]}
    found = json.loads(done.stdout.splitlines()[-1])
    return {"skipped": "no Valkey"} if found is None else {**found, "missed": []}


def upgrade() -> dict[str, Any]:
    """A database and a journal left in flight by the commit before go on under this one."""
    asked = subprocess.run(
        ["git", "rev-parse", "--short", BEFORE], capture_output=True, text=True, check=False
    )
    if asked.returncode:
        return {"skipped": "no history here"}
    done = _python("-m", "tests.faults.upgrade", asked.stdout.strip())
    missed = [] if done.returncode == 0 else [f"it did not go on: {(done.stderr or done.stdout)[-300:]}"]
    return {"from": asked.stdout.strip(), "missed": missed}


ASIDE: dict[str, Callable[[], dict[str, Any]]] = {"naive": naive, "upgrade": upgrade}


def _python(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)

"""The effect server, the world outside: `python -m tests.faults.harness.effects DIRECTORY`.

It keeps a file of its own, with every raw call and its idempotency key.
"""

import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

from tests.faults.harness.asgi import Receive, Send, answer, body_of, header, serve

CREATE = "CREATE TABLE call (key TEXT NOT NULL, at REAL NOT NULL, caller INTEGER NOT NULL)"


class Effects:
    def __init__(self, path: Path) -> None:
        self._rows = sqlite3.connect(path, isolation_level=None)
        self._rows.execute("PRAGMA journal_mode=WAL")
        self._rows.execute("PRAGMA synchronous=OFF")
        self._rows.execute(CREATE)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        await body_of(receive)
        made = (header(scope, b"idempotency-key"), time.time(), int(header(scope, b"x-caller")))
        self._rows.execute("INSERT INTO call VALUES (?, ?, ?)", made)
        await answer(send, 200, b"{}")


def calls(path: Path) -> list[tuple[str, float, int]]:
    """Every raw call: key, moment, caller's process."""
    with sqlite3.connect(path) as rows:
        return rows.execute("SELECT key, at, caller FROM call ORDER BY at").fetchall()


def main(home: Path) -> None:
    serve(Effects(home / "effects.sqlite3"), home / "effects.address")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

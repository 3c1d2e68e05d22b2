"""By hand: two rows a step, each in a commit of its own, by the plain driver."""

import json
import sqlite3
import time
import uuid
from typing import Any

from benchmarks.durable.script import ANSWER, RESULT, SIZE, sqlite_path, sqlite_size

INSTALLED = None
_TABLE = "CREATE TABLE IF NOT EXISTS record (run {id}, seq bigint, body {json} NOT NULL, {key})"
_KEY = "PRIMARY KEY (run, seq)"


class Subject:
    """The same loop on either database."""

    def __init__(self, url: str) -> None:
        self.path = sqlite_path(url) if url.startswith("sqlite") else None
        self.insert = "INSERT INTO record (run, seq, body) VALUES (?, ?, ?)"
        if self.path is None:
            import psycopg

            self.connection: Any = psycopg.connect(url, autocommit=True, prepare_threshold=0)
            self.insert = self.insert.replace("?", "%s")
            self.connection.execute(_TABLE.format(id="uuid", json="jsonb", key=_KEY))
            return
        self.connection = sqlite3.connect(self.path, isolation_level=None)
        for pragma in ("journal_mode = WAL", "synchronous = FULL"):
            self.connection.execute(f"PRAGMA {pragma}")
        self.connection.execute(_TABLE.format(id="text", json="text", key=_KEY))

    def steps(self, count: int) -> list[float]:
        run = str(uuid.uuid4())
        stamps = [time.perf_counter()]
        for number in range(count):
            call = {"id": f"call_{number}", "name": "add", "arguments": {"a": number, "b": 1}}
            self._record(run, 2 * number, {"role": "assistant", "content": ANSWER, "tool_calls": [call]})
            self._record(run, 2 * number + 1, {"role": "tool", "id": call["id"], "content": RESULT})
            stamps.append(time.perf_counter())
        return stamps

    def _record(self, run: str, seq: int, message: dict[str, Any]) -> None:
        self.connection.execute(self.insert, (run, seq, json.dumps(message)))

    def stored(self) -> int:
        if self.path is not None:
            return sqlite_size(self.connection, self.path)
        return self.connection.execute(SIZE).fetchone()[0]

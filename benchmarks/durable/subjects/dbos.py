"""DBOS: a workflow whose model and tool calls are steps, each checkpointed in its database."""

import time
from typing import Any

from dbos import DBOS

from benchmarks.durable.script import ANSWER, RESULT, SIZE

INSTALLED = "dbos"


@DBOS.step()
def ask(number: int) -> dict[str, Any]:
    call = {"id": f"call_{number}", "name": "add", "arguments": {"a": number, "b": 1}}
    return {"role": "assistant", "content": ANSWER, "tool_calls": [call]}


@DBOS.step()
def add(call: dict[str, Any]) -> dict[str, Any]:
    return {"role": "tool", "id": call["id"], "content": RESULT}


@DBOS.workflow()
def loop(count: int) -> list[float]:
    stamps: list[float] = []
    for number in range(count):
        stamps.append(time.perf_counter())
        add(ask(number)["tool_calls"][0])
    return [*stamps, time.perf_counter()]


class Subject:
    def __init__(self, url: str) -> None:
        import psycopg

        DBOS(config={"name": "bench", "system_database_url": url, "run_admin_server": False})
        DBOS.launch()
        self.connection = psycopg.connect(url, autocommit=True)

    def steps(self, count: int) -> list[float]:
        return loop(count)

    def stored(self) -> int:
        found = self.connection.execute(SIZE).fetchone()
        assert found is not None
        return found[0]

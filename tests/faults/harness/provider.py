"""The fake provider: `python -m tests.faults.harness.provider DIRECTORY SPEC`. Its log is the bill.

It keeps no memory of a conversation: what it says follows from what it is sent, so the same request
gets the same answer. Latency and faults come from the seed, the request and how often it was made.
"""

import asyncio
import contextlib
import hashlib
import json
import random
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.faults.harness.asgi import Receive, Send, answer, body_of, header, serve

ORDER = re.compile(r"Order (\d+), (\w+)\.")
ROUNDS = re.compile(r"It takes (\d+) rounds\.")
JUDGED = re.compile(r"Judge round (\d+) of it\.")
MARK = re.compile(rb"transcript-[0-9a-f]{16}|\w+day, \d{4}-\d\d-\d\d \d\d:\d\d UTC")
"""What is another one in each request to a supervisor: its mark, and the time that it is told."""
JUDGEMENT = 2
"""The step of an iteration in which the supervisor is asked: after the call and the answer."""
Key = tuple[int, int, int]


class Bucket:
    """So many requests a second, and as many at once."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._left, self._at = rate, time.monotonic()

    def wait(self) -> float:
        """Seconds until there is room; 0 takes a place."""
        now = time.monotonic()
        self._left, self._at = min(self.rate, self._left + (now - self._at) * self.rate), now
        if self._left >= 1:
            self._left -= 1
            return 0.0
        return (1 - self._left) / self.rate


class Provider:
    """`spec`: `seed`, `latency` ([least, most] seconds), `rate` (requests a second, or `None`), and
    `shares` of requests that get `error` (500), `stall` (silence) or `garbage`.
    """

    def __init__(self, spec: dict[str, Any], log: Path) -> None:
        self._seed = spec["seed"]
        self._latency = spec["latency"]
        self._shares: dict[str, float] = spec.get("shares", {})
        self._bucket = Bucket(spec["rate"]) if spec.get("rate") else None
        self._log = log.open("a", buffering=1)
        self._asked: Counter[Key] = Counter()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        body, began = await body_of(receive), time.time()
        contents = json.loads(body)["contents"]
        key, mood = read(contents)
        rounds = int((ROUNDS.findall(str(contents)) or [0])[0])
        self._asked[key] += 1
        status: int | str = 200
        try:
            status = await self._answer(key, mood, rounds, receive, send)
        finally:
            line = {"key": key, "began": began, "ended": time.time(), "status": status}
            line |= {
                "caller": int(header(scope, b"x-caller")),
                "digest": hashlib.sha256(MARK.sub(b"", body)).hexdigest()[:16],
            }
            self._log.write(json.dumps(line) + "\n")

    async def _answer(self, key: Key, mood: str, rounds: int, receive: Receive, send: Send) -> int | str:
        if self._bucket is not None and (wait := self._bucket.wait()):
            retry = (b"retry-after", f"{max(1.0, wait):.2f}".encode())
            await answer(send, 429, b'{"error": "slow down"}', retry)
            return 429
        chance = random.Random(f"{self._seed}/{key}/{self._asked[key]}")
        fault = "stall" if mood == "hang" else self._fault(chance.random())
        if fault == "stall":
            await _silence(receive)
            return "stall"
        await asyncio.sleep(chance.uniform(*self._latency))
        if fault == "error":
            await answer(send, 500, b'{"error": "overloaded"}')
            return 500
        if fault == "garbage":
            await answer(send, 200, b'{"text": "{\\"attem')
            return "garbage"
        await answer(send, 200, json.dumps(says(key, mood, rounds)).encode())
        return 200

    def _fault(self, drawn: float) -> str | None:
        for fault, share in sorted(self._shares.items()):
            if drawn < share:
                return fault
            drawn -= share
        return None


def read(contents: list[dict[str, Any]]) -> tuple[Key, str]:
    """What is asked: the order's number, the attempt and the step within it; and the order's mood."""
    users = [place for place, item in enumerate(contents) if item.get("role") == "user"]
    number, mood = ORDER.findall(contents[users[0]]["content"])[0]
    if judged := JUDGED.findall(contents[users[0]]["content"]):
        return (int(number), int(judged[0]), JUDGEMENT), mood
    done = sum(item["type"] == "tool_result" for item in contents[users[-1] :])
    return (int(number), len(users), done), mood


def says(key: Key, mood: str, rounds: int) -> dict[str, Any]:
    """The tool first, then the answer; a supervisor's decision after it."""
    _, attempt, done = key
    if done == 0:
        tool = "apply_if_allowed" if mood == "asks" and attempt == 2 else "apply"
        return {"id": f"call-{attempt}", "tool": tool, "arguments": {"attempt": attempt}}
    if done == JUDGEMENT:
        return {"text": json.dumps(decides(attempt, mood, rounds))}
    return {"text": json.dumps({"attempt": attempt})}


def decides(attempt: int, mood: str, rounds: int) -> dict[str, Any]:
    """How a loop of so many rounds goes on after this one."""
    said = {"reason": f"It was round {attempt} of {rounds}.", "summary": f"{attempt} rounds are done."}
    if attempt >= rounds:
        return {**said, "status": "complete", "evidence": "← apply: applied"}
    if mood == "blocks" and attempt == 1:
        return {**said, "status": "blocked", "required_input": {"question": "May it go on?"}}
    if mood == "waits" and attempt == 1:
        return {**said, "status": "wait", "wait": {"seconds": 1, "what_for": "a moment"}}
    return {**said, "status": "continue", "next_input": f"Do round {attempt + 1} of it."}


async def _silence(receive: Receive) -> None:
    with contextlib.suppress(Exception):
        while (await receive())["type"] != "http.disconnect":
            pass


def main(home: Path, spec: dict[str, Any]) -> None:
    serve(Provider(spec, home / "provider.jsonl"), home / "provider.address")


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))

"""Keeps what a model answered, so that a run that was ended goes on where it was and nothing is asked twice.

Kept is the text of each answer to each request and not what was decided: code that reads answers anew is
measured anew, and a changed prompt is asked anew.
"""

import hashlib
import json
import os
import re
import time
from pathlib import Path

from agency.agent import LlmRequest, LlmResponse, Message
from agency.agent.llm import LlmClient

_MARK = re.compile(r"transcript-[0-9a-f]{16}")


def answers_of(model: str) -> Path:
    """Where this model's answers are kept."""
    home = Path(os.environ.get("AGENCY_HOME") or ".agency")
    return home / "supervisor" / f"{model.replace(':', '-').replace('/', '-')}.jsonl"


class Remembered:
    """A client whose answers are kept in a file; `seconds` is what the answers since `restart()` took."""

    output_mode = "native"

    def __init__(self, client: LlmClient, path: Path) -> None:
        self.client = client
        self.seconds = 0.0
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self._known = {told["asked"]: told for told in map(json.loads, lines)}
        self.output_mode = getattr(client, "output_mode", "tool")
        self.takes_probes = getattr(client, "takes_probes", False)
        self.model_name = getattr(client, "model_name", None)

    def restart(self) -> None:
        self.seconds = 0.0

    def generate(self, request: LlmRequest) -> LlmResponse:
        asked = asked_for(request)
        if asked not in self._known:
            began = time.monotonic()
            text = self.client.generate(request).text
            self.keep(asked, text, time.monotonic() - began)
        told = self._known[asked]
        self.seconds += told["seconds"]
        return LlmResponse([Message(role="assistant", content=told["text"])])

    def keep(self, asked: str, text: str, seconds: float) -> None:
        told = {"asked": asked, "text": text, "seconds": round(seconds, 1)}
        self._known[asked] = told
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(told) + "\n")


def asked_for(request: LlmRequest) -> str:
    """A digest of what is asked, without the mark that is another one each time."""
    schema = request.output_schema.schema if request.output_schema else None
    said = [(item.role, item.content) for item in request.contents if isinstance(item, Message)]
    asked = json.dumps([request.instructions, said, schema, request.settings])
    return hashlib.sha256(_MARK.sub("", asked).encode()).hexdigest()

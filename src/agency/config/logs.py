"""Log lines of the ready project: one sentence, or one JSON object with the execution that it is about."""

import json
import logging
from datetime import UTC, datetime
from typing import Any

FIELDS = ("execution_id", "claim_id", "fence")


class JsonLines(logging.Formatter):
    """One JSON object a line: `time` (UTC), `level`, `logger`, `message`, the ids that are known, `error`."""

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        said |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        trace = record.exc_text or (self.formatException(record.exc_info) if record.exc_info else None)
        if trace:
            said["error"] = trace
        return json.dumps(said, ensure_ascii=False, default=str)

"""What tools leave for validators during one attempt. Knows neither of them."""

import threading
from collections.abc import Iterable
from typing import Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from agency.agent.injection import Injected
from agency.agent.text import clean_json
from agency.errors import InvalidInput


class ToolScratchpad(Injected):
    """Named values of the current attempt, in the order in which tools recorded them.

    A tool that has a parameter annotated with this class gets the execution's one; the model does not
    see the parameter. Values are kept as JSON, since they outlive a crash of the worker. Cleared before
    each retry. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pairs: list[tuple[str, Any]] = []

    def record(self, key: str, value: Any) -> None:
        """Add a value under `key`; what is no JSON is turned into it (models, dates) or refused."""
        kept = _as_json(key, value)
        with self._lock:
            self._pairs.append((key, kept))

    def read(self, key: str) -> Any:
        """The newest value under `key`, or `None`; `entries()` tells "nothing" from a recorded `None`."""
        entries = self.entries(key)
        return entries[-1] if entries else None

    def entries(self, key: str) -> list[Any]:
        """Every value that this attempt recorded under `key`, oldest first."""
        with self._lock:
            return [value for name, value in self._pairs if name == key]

    def clear(self) -> None:
        with self._lock:
            self._pairs = []

    def mark(self) -> int:
        """Where the pad stands now, for `since`."""
        with self._lock:
            return len(self._pairs)

    def since(self, mark: int) -> list[list[Any]]:
        """What was recorded after `mark`, as `[key, value]` pairs: what a journal stores of a tool call."""
        with self._lock:
            return [[key, value] for key, value in self._pairs[mark:]]

    def restore(self, pairs: Iterable[Iterable[Any]]) -> None:
        """Append pairs that `since` once gave, so that a replayed attempt sees what its tools left."""
        restored = [(key, value) for key, value in pairs]
        with self._lock:
            self._pairs.extend(restored)


def _as_json(key: str, value: Any) -> Any:
    try:
        return clean_json(to_jsonable_python(value, inf_nan_mode="strings"))
    except (PydanticSerializationError, UnicodeDecodeError) as exc:
        raise InvalidInput(f"scratchpad value {key!r} cannot be kept as JSON: {exc}") from exc

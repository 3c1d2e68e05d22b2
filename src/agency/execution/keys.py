"""Reads the journal's keys of tool calls: `iteration:[outer call/...]turn:step:ordinal:tool:hash`."""

import re
from dataclasses import dataclass

_CALL = re.compile(r"(?P<start>\d+:(?P<path>.*/)?\d+:\d+):(?P<ordinal>\d+):(?P<tool>[^:]+):[^:]+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CallKey:
    """Where a tool call stands in the journal: `start` is the key of its step, `path` the calls around it."""

    start: str
    path: str
    ordinal: int
    tool: str

    @classmethod
    def read(cls, key: str) -> "CallKey | None":
        """`None` for the key of anything but a tool call."""
        match = _CALL.fullmatch(key)
        if match is None:
            return None
        return cls(match["start"], match["path"] or "", int(match["ordinal"]), match["tool"])

    @property
    def model_key(self) -> str:
        """The key of the model's answer that asked for the call."""
        return f"{self.start}:model"

    def qualified(self, call_id: str) -> str:
        """The call's id as people know it: with those of the calls around it."""
        return self.path + call_id

    def own(self, qualified: str) -> str:
        """The id that the model gave the call."""
        return qualified.removeprefix(self.path)

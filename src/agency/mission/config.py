"""What an execution keeps of its mission as it was when it was dispatched: `metadata["loop_config"]`."""

from dataclasses import asdict, dataclass, field
from typing import Any

from agency.execution.metadata import LOOP_CONFIG
from agency.mission.transcript import LOCAL_CAPS, Caps

__all__ = ["LOOP_CONFIG", "LoopConfig", "caps_for"]

FAILED_TURNS = 3
"""So many failed turns in a row end a mission that says nothing else."""


@dataclass(frozen=True, slots=True)
class LoopConfig:
    """`supervisor_model` empty means the agent's own; `caps` are those of the transcript it reads."""

    is_loop: bool
    loop_prompt: str | None
    max_iterations: int
    loop_delay_seconds: float
    supervisor_model: str = ""
    caps: Caps = field(default_factory=Caps)
    completion_checks: list[str] = field(default_factory=list[str])
    limits: dict[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def read(cls, metadata: dict[str, Any]) -> "LoopConfig":
        kept: dict[str, Any] = {**metadata[LOOP_CONFIG]}
        kept["caps"] = Caps(**kept["caps"])
        return cls(**kept)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def iteration_seconds(self) -> float | None:
        """For how long one iteration may hold a worker; `None` if the mission does not say."""
        return self.limits.get("iteration_seconds")

    @property
    def failed_turns(self) -> int:
        return self.limits.get("failed_turns") or FAILED_TURNS


def caps_for(provider: str) -> Caps:
    """How much a supervisor of this provider reads: models on this machine have small contexts."""
    return LOCAL_CAPS if provider == "local" else Caps()
